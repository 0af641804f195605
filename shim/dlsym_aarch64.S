/* See dlsym_x86_64.S. */
#if defined(__aarch64__)
    .text
    .globl dlsym
    .type dlsym, %function
dlsym:
    .cfi_startproc
    hint    #34                 /* bti c */
    cbz     x1, .Lreal
    /* Only names in cu, nv and __nv can be ours. */
    mov     x10, x1
    ldrb    w9, [x10]
    cmp     w9, #'c'
    b.eq    .Lcu
    cmp     w9, #'_'
    b.ne    .Lnv
    ldrb    w9, [x10, #1]
    cmp     w9, #'_'
    b.ne    .Lreal
    add     x10, x10, #2
.Lnv:
    ldrb    w9, [x10]
    cmp     w9, #'n'
    b.ne    .Lreal
    ldrb    w9, [x10, #1]
    cmp     w9, #'v'
    b.ne    .Lreal
    b       .Lfilter
.Lcu:
    ldrb    w9, [x10, #1]
    cmp     w9, #'u'
    b.ne    .Lreal
.Lfilter:
    stp     x29, x30, [sp, #-32]!
    .cfi_adjust_cfa_offset 32
    stp     x0, x1, [sp, #16]
    bl      ttt_dlsym_filter
    mov     x9, x0
    ldp     x0, x1, [sp, #16]
    ldp     x29, x30, [sp], #32
    .cfi_adjust_cfa_offset -32
    cmp     x9, #1
    b.eq    .Lreal
    mov     x0, x9
    ret
.Lreal:
    adrp    x9, ttt_real_dlsym
    ldr     x9, [x9, :lo12:ttt_real_dlsym]
    cbz     x9, .Lfind
    br      x9
.Lfind:
    stp     x29, x30, [sp, #-32]!
    .cfi_adjust_cfa_offset 32
    stp     x0, x1, [sp, #16]
    bl      ttt_find_real_dlsym
    ldp     x0, x1, [sp, #16]
    ldp     x29, x30, [sp], #32
    .cfi_adjust_cfa_offset -32
    adrp    x9, ttt_real_dlsym
    ldr     x9, [x9, :lo12:ttt_real_dlsym]
    cbz     x9, .Lnone
    br      x9
.Lnone:
    mov     x0, xzr
    ret
    .cfi_endproc
    .size dlsym, .-dlsym

#ifdef TTT_SONAME_BUILD
/* w17 = slot. */
    .globl ttt_forward_slow
    .hidden ttt_forward_slow
    .type ttt_forward_slow, %function
ttt_forward_slow:
    .cfi_startproc
    stp     x29, x30, [sp, #-112]!
    .cfi_adjust_cfa_offset 112
    stp     x0, x1, [sp, #16]
    stp     x2, x3, [sp, #32]
    stp     x4, x5, [sp, #48]
    stp     x6, x7, [sp, #64]
    stp     d0, d1, [sp, #80]
    str     x8, [sp, #96]
    mov     w0, w17
    bl      ttt_forward_resolve
    mov     x16, x0
    ldp     x0, x1, [sp, #16]
    ldp     x2, x3, [sp, #32]
    ldp     x4, x5, [sp, #48]
    ldp     x6, x7, [sp, #64]
    ldp     d0, d1, [sp, #80]
    ldr     x8, [sp, #96]
    ldp     x29, x30, [sp], #112
    .cfi_adjust_cfa_offset -112
    br      x16
    .cfi_endproc
    .size ttt_forward_slow, .-ttt_forward_slow
#endif
#endif
    .section .note.GNU-stack,"",%progbits
