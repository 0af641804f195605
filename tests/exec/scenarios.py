"""Instruction tests that need more than registers: memory, atomics, warps, barriers, calls, control flow."""
import struct


def u32(*xs):
    return struct.pack("<%dI" % len(xs), *[x & 0xFFFFFFFF for x in xs]).hex()


def u64(*xs):
    return struct.pack("<%dQ" % len(xs), *[x & 0xFFFFFFFFFFFFFFFF for x in xs]).hex()


def f32(*xs):
    return struct.pack("<%df" % len(xs), *xs).hex()


def buf(size, data=""):
    b = {"bytes": size}
    if data:
        b["hex"] = data
    return {"buffer": b}


PROLOGUE = ".version 8.7\n.target sm_90\n.address_size 64\n"
REGS = """	.reg .pred %p<8>;
	.reg .b16 %h<16>;
	.reg .b32 %r<32>;
	.reg .b64 %d<24>;
	.reg .f32 %f<16>;
	.reg .f64 %e<8>;
"""
# %d1 = out + 4·tid, %r1 = tid, %d2 = out
OUT = """	ld.param.u64 %d2, [out];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %d1, %r1, 4;
	add.s64 %d1, %d2, %d1;
"""


def kernel(body, params=".param .u64 out", before="", setup=OUT):
    return PROLOGUE + before + ".visible .entry k(" + params + ")\n{\n" + REGS + setup + body + "\tret;\n}\n"


class Book:
    def __init__(self, write, head):
        self.write, self.head, self.count = write, head, 0

    def add(self, name, block, args, expect, text, forms, grid=(1, 1, 1), shared=0):
        expect = [{"arg": a, "hex": h} for a, h in expect]
        self.write(name, self.head("k", list(block), args, expect, forms, (), grid, shared), text)
        self.count += forms


def memory(book):
    data = bytes(range(128, 256)) * 2
    # Every load type, sign- and zero-extension, from byte 8 on.
    loads, want, at = "", b"", 0
    for t, size, signed in (("u8", 1, 0), ("s8", 1, 1), ("b8", 1, 0), ("u16", 2, 0), ("s16", 2, 1), ("u32", 4, 0),
                            ("s32", 4, 1), ("b32", 4, 0), ("f32", 4, 0), ("u64", 8, 0), ("s64", 8, 1), ("b64", 8, 0), ("f64", 8, 0)):
        reg = "%f1" if t == "f32" else "%e1" if t == "f64" else "%d5" if size == 8 else "%d5"
        loads += "\tld.global.%s %s, [%%d3+%d];\n" % (t, reg, 8 + at % 16)
        loads += "\tst.global.b%d [%%d2+%d], %s;\n" % (32 if t == "f32" else 64, at, reg)
        chunk = data[8 + at % 16:8 + at % 16 + size]
        value = int.from_bytes(chunk, "little", signed=bool(signed))
        want += (value & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little") if t != "f32" else chunk + bytes(4)
        at += 8
    text = kernel(loads, ".param .u64 out, .param .u64 in", "", OUT + "\tld.param.u64 %d3, [in];\n")
    book.add("mem_load_types", (1, 1, 1), [buf(at), buf(256, data.hex())], [(0, want.hex())], text, 13)

    # Vectors and cache hints: copies of 16 bytes in five ways, and a sink.
    body = """	ld.global.v2.u32 {%r2, %r3}, [%d3];
	st.global.v2.u32 [%d2], {%r2, %r3};
	ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%d3+16];
	st.global.v4.f32 [%d2+16], {%f1, %f2, %f3, %f4};
	ld.global.ca.v2.f64 {%e1, %e2}, [%d3+32];
	st.global.wb.v2.f64 [%d2+32], {%e1, %e2};
	ld.global.L1::evict_last.L2::128B.v4.u8 {%r4, %r5, %r6, %r7}, [%d3+48];
	st.global.cs.v4.u8 [%d2+48], {%r7, %r6, %r5, %r4};
	ld.volatile.global.v2.u16 {%h1, %h2}, [%d3+52];
	st.volatile.global.v2.u16 [%d2+52], {%h2, %h1};
	ld.relaxed.gpu.global.u32 %r8, [%d3+56];
	st.release.sys.global.u32 [%d2+56], %r8;
	ldu.global.u32 %r9, [%d3+60];
	st.global.cg.u32 [%d2+60], %r9;
	ld.global.b32 {%r10}, [%d3+8];
	st.global.b32 [%d2+8], {%r10};
	prefetch.global.L2 [%d3];
	prefetch.global.L1 [%d3];
	fence.acq_rel.gpu;
	membar.gl;
	nanosleep.u32 1;
"""
    w = bytearray(64)
    w[0:12], w[16:32], w[32:48] = data[0:12], data[16:32], data[32:48]
    w[48:52] = bytes(reversed(data[48:52]))
    w[52:56] = data[54:56] + data[52:54]
    w[56:64] = data[56:64]
    book.add("mem_vectors", (1, 1, 1), [buf(64), buf(256, data.hex())], [(0, bytes(w).hex())],
             kernel(body, ".param .u64 out, .param .u64 in", "", OUT + "\tld.param.u64 %d3, [in];\n"), 18)

    # Shared, local, const and generic addressing; extern shared; initialisers.
    before = """.const .align 4 .u32 table[4] = {11, 22, 33, 44};
.global .align 4 .u32 counter = 5;
.global .align 1 .b8 text[6] = {104, 101, 108, 108, 111, 0};
.global .align 8 .u64 where[2] = {table, counter};
.shared .align 4 .b8 fixed[128];
.extern .shared .align 16 .b8 dynamic[];
"""
    body = """	.local .align 8 .b8 depot[64];
	mov.u32 %r2, fixed;
	shl.b32 %r3, %r1, 2;
	add.u32 %r2, %r2, %r3;
	add.u32 %r4, %r1, 100;
	st.shared.u32 [%r2], %r4;
	bar.sync 0;
	xor.b32 %r5, %r1, 1;
	shl.b32 %r5, %r5, 2;
	mov.u32 %r6, fixed;
	add.u32 %r6, %r6, %r5;
	ld.shared.u32 %r7, [%r6];
	st.global.u32 [%d1], %r7;
	mov.u64 %d3, dynamic;
	cvta.shared.u64 %d4, %d3;
	mul.wide.u32 %d5, %r1, 4;
	add.s64 %d4, %d4, %d5;
	st.u32 [%d4], %r4;
	cvta.to.shared.u64 %d6, %d4;
	ld.shared.u32 %r8, [%d6];
	st.global.u32 [%d1+128], %r8;
	mov.u64 %d7, depot;
	cvta.local.u64 %d8, %d7;
	st.u32 [%d8+8], %r1;
	ld.local.u32 %r9, [%d7+8];
	ld.local.u32 %r10, [depot+8];
	add.u32 %r9, %r9, %r10;
	st.global.u32 [%d1+256], %r9;
	and.b32 %r11, %r1, 3;
	mul.wide.u32 %d9, %r11, 4;
	mov.u64 %d10, table;
	add.s64 %d10, %d10, %d9;
	ld.const.u32 %r12, [%d10];
	ld.const.u32 %r13, [table+4];
	add.u32 %r12, %r12, %r13;
	ld.global.u32 %r14, [counter];
	add.u32 %r12, %r12, %r14;
	ld.global.u8 %r15, [text+1];
	add.u32 %r12, %r12, %r15;
	ld.global.u64 %d11, [where+8];
	ld.u32 %r16, [%d11];
	add.u32 %r12, %r12, %r16;
	st.global.u32 [%d1+384], %r12;
	isspacep.shared %p1, %d4;
	isspacep.local %p2, %d8;
	isspacep.global %p3, %d1;
	isspacep.shared %p4, %d8;
	selp.u32 %r17, 1, 0, %p1;
	selp.u32 %r18, 2, 0, %p2;
	selp.u32 %r19, 4, 0, %p3;
	selp.u32 %r20, 8, 0, %p4;
	or.b32 %r17, %r17, %r18;
	or.b32 %r17, %r17, %r19;
	or.b32 %r17, %r17, %r20;
	st.global.u32 [%d1+512], %r17;
"""
    want = u32(*[100 + (i ^ 1) for i in range(32)]) + u32(*[100 + i for i in range(32)]) + u32(*[2 * i for i in range(32)])
    want += u32(*[[11, 22, 33, 44][i & 3] + 22 + 5 + 101 + 5 for i in range(32)]) + u32(*[7] * 32)
    book.add("mem_spaces", (32, 1, 1), [buf(640)], [(0, want)], kernel(body, before=before), 24, shared=128)

    # By-value structure, sub-word and vector parameters.
    body = """	ld.param.u8 %r2, [small];
	st.global.u32 [%d2], %r2;
	ld.param.s16 %r3, [half];
	st.global.u32 [%d2+4], %r3;
	ld.param.v2.u32 {%r4, %r5}, [object+8];
	st.global.v2.u32 [%d2+8], {%r5, %r4};
	ld.param.f64 %e1, [big];
	st.global.f64 [%d2+16], %e1;
	mov.b64 %d3, object;
	cvta.param.u64 %d4, %d3;
	ld.u32 %r6, [%d4+4];
	st.global.u32 [%d2+24], %r6;
	mul.wide.u32 %d5, %r1, 4;
	add.s64 %d3, %d3, %d5;
	ld.param.u32 %r7, [%d3+12];
	st.global.u32 [%d2+28], %r7;
"""
    params = ".param .u64 out, .param .u8 small, .param .u16 half, .param .align 8 .b8 object[16], .param .f64 big"
    book.add("mem_params", (1, 1, 1),
             [buf(32), {"u8": 200}, {"s16": -3}, {"bytes": u32(1, 2, 3, 4)}, {"f64": 2.5}],
             [(0, u32(200, -3, 4, 3) + struct.pack("<d", 2.5).hex() + u32(2, 4))], kernel(body, params), 7)

    # cp.async: full, zero-filled, waits.
    body = """	.shared .align 16 .b8 stage[64];
	mov.u32 %r2, stage;
	ld.param.u64 %d3, [in];
	cp.async.ca.shared.global [%r2], [%d3], 16;
	cp.async.cg.shared.global [%r2+16], [%d3+16], 16;
	mov.u32 %r3, 4;
	cp.async.ca.shared.global [%r2+32], [%d3+32], 8, %r3;
	cp.async.ca.shared.global [%r2+40], [%d3+40], 4;
	cp.async.commit_group;
	cp.async.wait_group 0;
	cp.async.wait_all;
	bar.sync 0;
	ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2];
	st.global.v4.u32 [%d2], {%r4, %r5, %r6, %r7};
	ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2+16];
	st.global.v4.u32 [%d2+16], {%r4, %r5, %r6, %r7};
	ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2+32];
	st.global.v4.u32 [%d2+32], {%r4, %r5, %r6, 0};
"""
    d = list(range(1, 17))
    book.add("mem_cp_async", (1, 1, 1), [buf(48), buf(64, u32(*d))], [(0, u32(*d[:8], 9, 0, 11, 0))],
             kernel(body, ".param .u64 out, .param .u64 in"), 7)


def atomics(book):
    # One word per operation; 32 threads each add their lane in some way; results do not depend on order.
    ops = [("add.u32", "%r1", 0, sum(range(32))), ("min.s32", "%r4", 100, -31), ("max.s32", "%r4", -100, 0),
           ("min.u32", "%r1", 50, 0), ("max.u32", "%r1", 5, 31), ("and.b32", "%r5", 0xFFFFFFFF, 0x7FFFFFFF & ~0x7FFFFFFF),
           ("or.b32", "%r6", 0, 0xFFFFFFFF), ("xor.b32", "%r6", 0, 0xFFFFFFFF), ("inc.u32", "%r7", 0, 32 % 11), ("dec.u32", "%r7", 3, None)]
    ops[5] = ("and.b32", "%r5", 0xFFFFFFFF, 0)
    body = """	neg.s32 %r4, %r1;
	mov.u32 %r8, 1;
	shl.b32 %r6, %r8, %r1;
	not.b32 %r5, %r6;
	mov.u32 %r7, 10;
"""
    initial, want = [], []
    for i, (op, operand, start, end) in enumerate(ops):
        if op == "dec.u32":
            end = start
            for _ in range(32):
                end = 10 if end == 0 or end > 10 else end - 1
        body += "\tatom.global.%s %%r10, [%%d2+%d], %s;\n" % (op, 4 * i, operand)
        initial.append(start)
        want.append(end)
    for i, (op, operand, start, end) in enumerate(ops):
        body += "\tred.global.%s [%%d2+%d], %s;\n" % (op, 64 + 4 * i, operand)
    pad = [0] * (16 - len(ops))
    book.add("atom_global", (32, 1, 1), [buf(128, u32(*initial, *pad, *initial, *pad))], [(0, u32(*want, *pad, *want, *pad))], kernel(body), 20)

    body = """	cvt.u64.u32 %d3, %r1;
	atom.global.add.u64 %d4, [%d2], %d3;
	atom.global.max.u64 %d4, [%d2+8], %d3;
	neg.s64 %d5, %d3;
	atom.global.min.s64 %d4, [%d2+16], %d5;
	mov.f32 %f1, 0f3F000000;
	atom.global.add.f32 %f2, [%d2+24], %f1;
	red.global.add.f64 [%d2+32], 0d3FD0000000000000;
	mov.b32 %r2, 0x3C003800;
	atom.global.add.noftz.f16x2 %r3, [%d2+40], %r2;
	mov.b16 %h1, 0x3C00;
	atom.global.add.noftz.f16 %h2, [%d2+44], %h1;
	mov.b32 %r2, 0x3F803F00;
	red.global.add.noftz.bf16x2 [%d2+48], %r2;
	atom.global.exch.b32 %r4, [%d2+52], 77;
	setp.eq.u32 %p1, %r1, 5;
	@%p1 atom.global.cas.b32 %r5, [%d2+56], 9, 10;
	@%p1 st.global.u32 [%d2+60], %r5;
	@%p1 atom.global.cas.b32 %r5, [%d2+64], 9, 10;
	@%p1 atom.global.cas.b64 %d6, [%d2+72], 1, 2;
	@%p1 mov.u64 %d7, %d2;
	@%p1 atom.add.u32 %r6, [%d7+80], 3;
	@%p1 atom.global.cas.b16 %h3, [%d2+84], %h1, %h1;
	@%p1 red.relaxed.gpu.global.v2.f32.add [%d2+88], {%f1, %f1};
"""
    start = u64(0, 7, 0) + f32(1.0) + u32(0) + struct.pack("<d", 0.5).hex() + u32(0x40004000, 0, 0, 0, 9, 0, 8) + u32(0) + u64(1) + u32(4, 0x3C00)
    start += f32(1.0, 2.0)
    want = u64(sum(range(32)), 31, -31) + f32(17.0) + u32(0) + struct.pack("<d", 8.5).hex()
    # f16x2 2+32·1 and 2+32·0.5 ; f16 32 ; bf16x2 32 and 16
    want += u32(0x50404C80, 0x5000, 0x42004180, 77, 10, 9, 8) + u32(0) + u64(2) + u32(7, 0x3C00) + f32(1.5, 2.5)
    book.add("atom_types", (32, 1, 1), [buf(96, start)], [(0, want)], kernel(body), 16)

    body = """	.shared .align 8 .b8 cells[32];
	setp.ne.u32 %p1, %r1, 0;
	mov.u32 %r2, cells;
	@%p1 bra WAIT;
	st.shared.v4.u32 [%r2], {0, 0, 0, 0};
	st.shared.v4.u32 [%r2+16], {0, 0, 0, 0};
WAIT:
	bar.sync 0;
	atom.shared.add.u32 %r3, [%r2], 1;
	atom.shared.add.f32 %f1, [%r2+4], 0f3F800000;
	red.shared.max.u32 [%r2+8], %r1;
	atom.shared::cta.add.u64 %d3, [%r2+16], 2;
	atom.shared.exch.b32 %r4, [%r2+24], 6;
	bar.sync 0;
	ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r2];
	ld.shared.v4.u32 {%r9, %r10, %r11, %r12}, [%r2+16];
	@!%p1 st.global.v4.u32 [%d2], {%r5, %r6, %r7, %r8};
	@!%p1 st.global.v4.u32 [%d2+16], {%r9, %r10, %r11, %r12};
"""
    book.add("atom_shared", (64, 1, 1), [buf(32)], [(0, u32(64) + f32(64.0) + u32(63, 0, 128, 0, 6, 0))], kernel(body), 5)


def warps(book):
    full = range(32)
    body, want, at = "", "", 0

    def emit(code, values):
        nonlocal body, want, at
        body += code + "\tst.global.u32 [%%d1+%d], %%r2;\n" % at
        want += u32(*values)
        at += 128

    def shfl(mode, b, c):
        out = []
        for lane in full:
            seg, clamp = c >> 8 & 31, c & 31
            first = lane & seg
            last = first | clamp & ~seg & 31
            j = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": first | b & ~seg & 31}[mode]
            ok = j >= last if mode == "up" else j <= last
            out.append(((j if ok else lane) * 3 + 7) | (0x10000 if ok else 0))
        return out
    body += "\tmad.lo.u32 %r3, %r1, 3, 7;\n"
    for mode, b, c in (("up", 1, 0), ("up", 4, 0x1000), ("down", 2, 31), ("down", 3, 0x181F), ("bfly", 16, 31), ("bfly", 5, 0x100F),
                       ("idx", 9, 31), ("idx", 2, 0x1C1F)):
        emit("\tshfl.sync.%s.b32 %%r2|%%p1, %%r3, %d, %d, -1;\n\tselp.u32 %%r4, 65536, 0, %%p1;\n\tor.b32 %%r2, %%r2, %%r4;\n" % (mode, b, c), shfl(mode, b, c))
    body += "\tand.b32 %r5, %r1, 3;\n\tsetp.eq.u32 %p2, %r5, 1;\n\tsetp.lt.u32 %p3, %r1, 40;\n"
    ballot = sum(1 << i for i in full if i & 3 == 1)
    sel = "\tselp.u32 %r2, 1, 0, %p1;\n"
    emit("\tvote.sync.ballot.b32 %r2, %p2, -1;\n", [ballot] * 32)
    emit("\tvote.sync.ballot.b32 %r2, !%p2, 0xffffffff;\n", [~ballot] * 32)
    emit("\tvote.sync.all.pred %p1, %p2, -1;\n" + sel, [0] * 32)
    emit("\tvote.sync.all.pred %p1, %p3, -1;\n" + sel, [1] * 32)
    emit("\tvote.sync.any.pred %p1, %p2, -1;\n" + sel, [1] * 32)
    emit("\tvote.sync.uni.pred %p1, %p3, -1;\n" + sel, [1] * 32)
    emit("\tvote.sync.uni.pred %p1, %p2, -1;\n" + sel, [0] * 32)
    emit("\tmatch.any.sync.b32 %r2, %r5, -1;\n", [sum(1 << j for j in full if j & 3 == i & 3) for i in full])
    emit("\tmatch.all.sync.b32 %r2|%p1, %r5, -1;\n", [0] * 32)
    emit("\tmov.u64 %d5, 9;\n\tmatch.all.sync.b64 %r2|%p1, %d5, -1;\n", [0xFFFFFFFF] * 32)
    emit("\tredux.sync.add.s32 %r2, %r3, -1;\n", [sum(3 * i + 7 for i in full)] * 32)
    emit("\tredux.sync.max.u32 %r2, %r3, -1;\n", [3 * 31 + 7] * 32)
    emit("\tneg.s32 %r6, %r3;\n\tredux.sync.min.s32 %r2, %r6, -1;\n", [-(3 * 31 + 7)] * 32)
    x = o = 0
    a = 0xFFFFFFFF
    for i in full:
        x, o, a = x ^ (3 * i + 7), o | (3 * i + 7), a & (3 * i + 7)
    emit("\tredux.sync.xor.b32 %r2, %r3, -1;\n", [x] * 32)
    emit("\tredux.sync.or.b32 %r2, %r3, -1;\n", [o] * 32)
    emit("\tredux.sync.and.b32 %r2, %r3, -1;\n", [a] * 32)
    emit("\tactivemask.b32 %r2;\n", [0xFFFFFFFF] * 32)
    emit("\telect.sync %r2|%p1, -1;\n\tselp.u32 %r4, 256, 0, %p1;\n\tor.b32 %r2, %r2, %r4;\n", [256] + [0] * 31)
    body += "\tbar.warp.sync -1;\n"
    # Half a warp on its own, lanes named by the mask only.
    emit("\tmov.u32 %r2, 0;\n\tsetp.lt.u32 %p4, %r1, 16;\n\t@!%p4 bra REST;\n\tredux.sync.add.u32 %r2, %r1, 0xffff;\n\tvote.sync.ballot.b32 %r7, %p2, 0xffff;\n\tadd.u32 %r2, %r2, %r7;\nREST:\n",
         [sum(range(16)) + (ballot & 0xFFFF) if i < 16 else 0 for i in full])
    book.add("warp", (32, 1, 1), [buf(at)], [(0, want)], kernel(body), 28)

    # Lanes that come to the same shuffle by different ways, one of them late.
    body = """	setp.lt.u32 %p1, %r1, 8;
	mov.u32 %r2, 5;
	@%p1 bra FEW;
	mov.u32 %r2, 6;
	bra.uni MEET;
FEW:
	add.u32 %r2, %r2, 1;
	add.u32 %r2, %r2, %r1;
MEET:
	shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1;
	st.global.u32 [%d1], %r3;
"""
    value = [6 + i if i < 8 else 6 for i in full]
    book.add("warp_reconverge", (32, 1, 1), [buf(128)], [(0, u32(*[value[i ^ 1] for i in full]))], kernel(body), 1)


def special_registers(book):
    body = """	mov.u32 %r2, %ntid.x;
	mov.u32 %r3, %tid.y;
	mad.lo.u32 %r4, %r3, %r2, %r1;
	mov.u32 %r5, %ntid.y;
	mul.lo.u32 %r6, %r2, %r5;
	mov.u32 %r7, %ctaid.x;
	mov.u32 %r8, %ctaid.y;
	mov.u32 %r9, %nctaid.x;
	mad.lo.u32 %r7, %r8, %r9, %r7;
	mad.lo.u32 %r10, %r7, %r6, %r4;
	mul.wide.u32 %d3, %r10, 32;
	add.s64 %d3, %d2, %d3;
	mov.u32 %r11, %laneid;
	activemask.b32 %r20;
	mov.u32 %r12, %warpid;  // the machine chooses it: only one for all lanes of a warp is certain
	match.all.sync.b32 %r12|%p1, %r12, %r20;
	selp.u32 %r12, 1, 0, %p1;
	mov.u32 %r13, %lanemask_eq;
	mov.u32 %r14, %lanemask_lt;
	mov.u32 %r15, %lanemask_le;
	mov.u32 %r16, %lanemask_gt;
	mov.u32 %r17, %lanemask_ge;
	mov.u32 %r18, %nctaid.y;
	st.global.v4.u32 [%d3], {%r11, %r12, %r13, %r14};
	st.global.v4.u32 [%d3+16], {%r15, %r16, %r17, %r18};
"""
    want = ""
    for block in range(6):
        for t in range(40):
            lane, one = t % 32, 1 << t % 32
            want += u32(lane, 1, one, one - 1, one * 2 - 1, ~(one * 2 - 1), ~(one - 1), 2)
    book.add("special_index", (10, 4, 1), [buf(6 * 40 * 32)], [(0, want)], kernel(body), 13, grid=(3, 2, 1))

    # Registers whose value is the machine's: only what must hold.
    body = """	mov.u32 %r2, %smid;
	mov.u32 %r3, %nsmid;
	setp.lt.u32 %p1, %r2, %r3;
	mov.u64 %d3, %clock64;
	mov.u64 %d4, %clock64;
	setp.ge.and.u64 %p1, %d4, %d3, %p1;
	mov.u64 %d5, %globaltimer;
	setp.ne.and.u64 %p1, %d5, 0, %p1;
	mov.u32 %r4, %clock;
	mov.u32 %r5, %dynamic_smem_size;
	setp.eq.and.u32 %p1, %r5, 64, %p1;
	mov.u32 %r6, %total_smem_size;
	setp.ge.and.u32 %p1, %r6, 64, %p1;
	mov.u32 %r7, %nwarpid;
	setp.ne.and.u32 %p1, %r7, 0, %p1;
	mov.u32 %r8, %ntid.z;
	mov.u32 %r9, %tid.z;
	setp.eq.and.u32 %p1, %r8, 1, %p1;
	setp.eq.and.u32 %p1, %r9, 0, %p1;
	selp.u32 %r10, 1, 0, %p1;
	st.global.u32 [%d1], %r10;
"""
    book.add("special_machine", (32, 1, 1), [buf(128)], [(0, u32(*[1] * 32))], kernel(body), 9, shared=64)


def barriers(book):
    body = """	setp.lt.u32 %p1, %r1, 40;
	bar.red.popc.u32 %r2, 0, %p1;
	bar.red.and.pred %p2, 0, %p1;
	bar.red.or.pred %p3, 0, %p1;
	barrier.sync 3;
	barrier.cta.sync.aligned 2, 96;
	barrier.cta.red.popc.aligned.u32 %r5, 1, 96, !%p1;
	selp.u32 %r3, 1000, 0, %p2;
	selp.u32 %r4, 2000, 0, %p3;
	add.u32 %r2, %r2, %r3;
	add.u32 %r2, %r2, %r4;
	mad.lo.u32 %r2, %r5, 10000, %r2;
	st.global.u32 [%d1], %r2;
"""
    book.add("barrier", (96, 1, 1), [buf(384)], [(0, u32(*[2040 + 560000] * 96))], kernel(body), 6)

    # Producer and consumer warps; threads that have left do not count; early exit before the barrier.
    body = """	.shared .align 4 .u32 box;
	setp.ge.u32 %p1, %r1, 64;
	@%p1 exit;
	setp.ge.u32 %p2, %r1, 32;
	@%p2 bra CONSUME;
	setp.eq.u32 %p3, %r1, 0;
	@%p3 st.shared.u32 [box], 42;
	bar.arrive 1, 64;
	bra.uni DONE;
CONSUME:
	bar.sync 1, 64;
	ld.shared.u32 %r2, [box];
	st.global.u32 [%d1], %r2;
DONE:
	bar.sync 0;
	ld.shared.u32 %r3, [box];
	st.global.u32 [%d1+256], %r3;
"""
    book.add("barrier_arrive", (128, 1, 1), [buf(512)], [(0, u32(*[0] * 32, *[42] * 32, *[42] * 64))], kernel(body), 3)


def control(book):
    # Loops with different trip counts, nested branches, guards, early return, brx.idx.
    body = """	mov.u32 %r2, 0;
	mov.u32 %r3, 0;
LOOP:
	setp.ge.u32 %p1, %r3, %r1;
	@%p1 bra DONE;
	and.b32 %r4, %r3, 1;
	setp.eq.u32 %p2, %r4, 0;
	@%p2 bra EVEN;
	add.u32 %r2, %r2, 100;
	bra.uni NEXT;
EVEN:
	add.u32 %r2, %r2, %r3;
NEXT:
	add.u32 %r3, %r3, 1;
	bra LOOP;
DONE:
	setp.eq.u32 %p3, %r1, 7;
	@%p3 ret;
	and.b32 %r5, %r1, 3;
	TABLE: .branchtargets A, B, C, A;
	brx.idx %r5, TABLE;
A:
	add.u32 %r2, %r2, 10000;
	bra END;
B:
	add.u32 %r2, %r2, 20000;
	bra END;
C:
	add.u32 %r2, %r2, 30000;
END:
	st.global.u32 [%d1], %r2;
"""
    want = []
    for t in range(32):
        s = sum(i if i % 2 == 0 else 100 for i in range(t)) + [10000, 20000, 30000, 10000][t & 3]
        want.append(0 if t == 7 else s)
    book.add("control", (32, 1, 1), [buf(128)], [(0, u32(*want))], kernel(body), 6)

    # A lock that lanes of one warp contend for, and a flag that one block waits for from another.
    body = """	ld.param.u64 %d3, [lock];
AGAIN:
	atom.global.cas.b32 %r2, [%d3], 0, 1;
	setp.ne.u32 %p1, %r2, 0;
	@%p1 bra AGAIN;
	ld.volatile.global.u32 %r3, [%d2];
	add.u32 %r3, %r3, 1;
	st.volatile.global.u32 [%d2], %r3;
	membar.gl;
	atom.global.exch.b32 %r4, [%d3], 0;
"""
    book.add("control_lock", (32, 1, 1), [buf(4), buf(4)], [(0, u32(32)), (1, u32(0))], kernel(body, ".param .u64 out, .param .u64 lock"), 1)
    body = """	mov.u32 %r2, %ctaid.x;
	setp.eq.u32 %p1, %r2, 1;
	@%p1 bra SIGNAL;
SPIN:
	ld.acquire.gpu.global.u32 %r3, [%d2];
	setp.eq.u32 %p2, %r3, 0;
	@%p2 bra SPIN;
	st.global.u32 [%d2+4], 1;
	bra END;
SIGNAL:
	st.release.gpu.global.u32 [%d2], 9;
END:
"""
    book.add("control_flag", (1, 1, 1), [buf(8)], [(0, u32(9, 1))], kernel(body), 2, grid=(2, 1, 1))


def calls(book):
    before = """.func (.param .b32 result) twice(.param .b32 x)
{
	.reg .b32 %r<3>;
	ld.param.b32 %r1, [x];
	shl.b32 %r2, %r1, 1;
	st.param.b32 [result], %r2;
	ret;
}
.func (.param .b32 result) plus_nine(.param .b32 x)
{
	.reg .b32 %r<3>;
	ld.param.b32 %r1, [x];
	add.u32 %r2, %r1, 9;
	st.param.b32 [result], %r2;
	ret;
}
.func (.reg .u32 result) fact(.reg .u32 n)
{
	.reg .u32 %m, %t;
	.reg .pred %p;
	setp.gt.u32 %p, n, 1;
	@%p bra MORE;
	mov.u32 result, 1;
	ret;
MORE:
	sub.u32 %m, n, 1;
	call (%t), fact, (%m);
	mul.lo.u32 result, n, %t;
	ret;
}
.func (.param .align 8 .b8 result[16]) swapped(.param .align 8 .b8 x[16])
{
	.reg .b64 %d<3>;
	ld.param.b64 %d1, [x];
	ld.param.b64 %d2, [x+8];
	st.param.b64 [result], %d2;
	st.param.b64 [result+8], %d1;
	ret;
}
.global .align 8 .u64 functions[2] = {twice, plus_nine};
"""
    body = """	{
	.param .b32 a;
	.param .b32 b;
	st.param.b32 [a], %r1;
	call.uni (b), twice, (a);
	ld.param.b32 %r2, [b];
	}
	st.global.u32 [%d1], %r2;
	and.b32 %r3, %r1, 7;
	call (%r4), fact, (%r3);
	st.global.u32 [%d1+128], %r4;
	and.b32 %r5, %r1, 1;
	mul.wide.u32 %d3, %r5, 8;
	mov.u64 %d4, functions;
	add.s64 %d4, %d4, %d3;
	ld.global.u64 %d5, [%d4];
	{
	.param .b32 a;
	.param .b32 b;
	st.param.b32 [a], %r1;
	PROTO: .callprototype (.param .b32 _) _ (.param .b32 _);
	call (b), %d5, (a), PROTO;
	ld.param.b32 %r6, [b];
	}
	st.global.u32 [%d1+256], %r6;
	setp.eq.u32 %p1, %r5, 1;
	mov.u32 %r7, 0;
	{
	.param .align 8 .b8 a[16];
	.param .align 8 .b8 b[16];
	cvt.u64.u32 %d6, %r1;
	st.param.b64 [a], %d6;
	st.param.b64 [a+8], 77;
	@%p1 call (b), swapped, (a);
	ld.param.b64 %d7, [b];
	@%p1 cvt.u32.u64 %r7, %d7;
	}
	st.global.u32 [%d1+384], %r7;
"""
    fact = [1, 1, 2, 6, 24, 120, 720, 5040]
    want = u32(*[2 * i for i in range(32)]) + u32(*[fact[i & 7] for i in range(32)])
    want += u32(*[i + 9 if i & 1 else 2 * i for i in range(32)]) + u32(*[77 if i & 1 else 0 for i in range(32)])
    book.add("call", (32, 1, 1), [buf(512)], [(0, want)], kernel(body, before=before), 5)


def write_all(write, head):
    book = Book(write, head)
    for part in (memory, atomics, warps, special_registers, barriers, control, calls):
        part(book)
    return book.count
