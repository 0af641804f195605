/* void *dlsym(void *handle, const char *name): a jump, not a call, to the real one, so that it finds the true caller. */
#if defined(__x86_64__)
    .text
    .globl dlsym
    .type dlsym, @function
dlsym:
    .cfi_startproc
    endbr64
    testq   %rsi, %rsi
    jz      .Lreal
    /* Only names in cu, nv and __nv can be ours; one byte after the other, since names may be shorter. */
    movq    %rsi, %rax
    cmpb    $'c', (%rax)
    je      .Lcu
    cmpb    $'_', (%rax)
    jne     .Lnv
    cmpb    $'_', 1(%rax)
    jne     .Lreal
    addq    $2, %rax
.Lnv:
    cmpb    $'n', (%rax)
    jne     .Lreal
    cmpb    $'v', 1(%rax)
    jne     .Lreal
    jmp     .Lfilter
.Lcu:
    cmpb    $'u', 1(%rax)
    jne     .Lreal
.Lfilter:
    pushq   %rdi
    .cfi_adjust_cfa_offset 8
    pushq   %rsi
    .cfi_adjust_cfa_offset 8
    subq    $8, %rsp
    .cfi_adjust_cfa_offset 8
    call    ttt_dlsym_filter
    addq    $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq    %rsi
    .cfi_adjust_cfa_offset -8
    popq    %rdi
    .cfi_adjust_cfa_offset -8
    cmpq    $1, %rax
    je      .Lreal
    ret
.Lreal:
    movq    ttt_real_dlsym(%rip), %rax
    testq   %rax, %rax
    jz      .Lfind
    jmp     *%rax
.Lfind:
    pushq   %rdi
    .cfi_adjust_cfa_offset 8
    pushq   %rsi
    .cfi_adjust_cfa_offset 8
    subq    $8, %rsp
    .cfi_adjust_cfa_offset 8
    call    ttt_find_real_dlsym
    addq    $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq    %rsi
    .cfi_adjust_cfa_offset -8
    popq    %rdi
    .cfi_adjust_cfa_offset -8
    movq    ttt_real_dlsym(%rip), %rax
    testq   %rax, %rax
    jz      .Lnone
    jmp     *%rax
.Lnone:
    xorl    %eax, %eax
    ret
    .cfi_endproc
    .size dlsym, .-dlsym

/* r11 = slot. Keeps every register that may carry an argument, then goes on as if the slot had been full. */
#ifdef TTT_SONAME_BUILD
    .globl ttt_forward_slow
    .hidden ttt_forward_slow
    .type ttt_forward_slow, @function
ttt_forward_slow:
    .cfi_startproc
    pushq   %rdi
    pushq   %rsi
    pushq   %rdx
    pushq   %rcx
    pushq   %r8
    pushq   %r9
    subq    $24, %rsp
    .cfi_adjust_cfa_offset 72
    movsd   %xmm0, (%rsp)
    movsd   %xmm1, 8(%rsp)
    movl    %r11d, %edi
    call    ttt_forward_resolve
    movq    %rax, %r11
    movsd   (%rsp), %xmm0
    movsd   8(%rsp), %xmm1
    addq    $24, %rsp
    popq    %r9
    popq    %r8
    popq    %rcx
    popq    %rdx
    popq    %rsi
    popq    %rdi
    .cfi_adjust_cfa_offset -72
    jmp     *%r11
    .cfi_endproc
    .size ttt_forward_slow, .-ttt_forward_slow
#endif
#endif
    .section .note.GNU-stack,"",%progbits
