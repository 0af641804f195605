#include <gtest/gtest.h>

#include "ptx/ir.h"

namespace ttt::ptx {
namespace {

constexpr const char* kHead = ".version 8.7\n.target sm_90\n.address_size 64\n";

Module parsed(const std::string& text) {
    auto module = parse(text);
    EXPECT_TRUE(module.ok()) << (module.ok() ? "" : module.error().str()) << "\n" << text;
    return module.ok() ? std::move(module).value() : Module();
}

Module kernel(const std::string& body, const std::string& params = ".param .u64 a") {
    return parsed(std::string(kHead) + ".visible .entry k(" + params + ")\n{\n" + body + "\n}\n");
}

Error fault(const std::string& text) {
    auto module = parse(text);
    EXPECT_FALSE(module.ok()) << text;
    return module.ok() ? Error{} : module.error();
}

Error body_fault(const std::string& body) {
    return fault(std::string(kHead) + ".entry k()\n{\n" + body + "\n}\n");
}

const Stmt& first_instruction(const Module& m) {
    for (const Stmt& s : m.functions.at(0).body)
        if (s.kind == Stmt::Kind::kInstruction) return s;
    ADD_FAILURE() << "no instruction";
    return m.functions.at(0).body.at(0);
}

TEST(Parser, ReadsHeader) {
    const Module m = parsed("// generated\n.version 9.0\n.target sm_90a, texmode_independent\n");
    EXPECT_EQ(m.version_major, 9u);
    EXPECT_EQ(m.version_minor, 0u);
    EXPECT_EQ(m.target, "sm_90a, texmode_independent");
    EXPECT_FALSE(m.has_address_size);
}

TEST(Parser, RegisterRangesMakeSymbolsOnUseOnly) {
    const Module m = kernel(".reg .b32 %r<1000000>;\nadd.s32 %r1, %r2, 7;\nret;");
    size_t registers = 0;
    for (const Symbol& s : m.symbols) registers += s.kind == Symbol::Kind::kRegister;
    EXPECT_EQ(registers, 2u);
    const Stmt& add = first_instruction(m);
    EXPECT_EQ(add.op, Opcode::kAdd);
    EXPECT_EQ(add.type(), Type::kS32);
    ASSERT_EQ(add.operands.size(), 3u);
    EXPECT_EQ(m.at(add.operands[0].sym).name, "%r1");
    EXPECT_EQ(m.at(add.operands[0].sym).type, Type::kB32);
    EXPECT_EQ(add.operands[2].value, 7u);
}

TEST(Parser, RangeEndsBeforeItsCount) {
    EXPECT_NE(body_fault(".reg .b32 %r<4>;\nmov.u32 %r4, 0;").message.find("undeclared"),
              std::string::npos);
    const Module m = kernel(".reg .b32 %r1<10>;\nmov.u32 %r19, 0;\n");
    EXPECT_EQ(m.at(first_instruction(m).operands[0].sym).name, "%r19");
}

// As the assembler has it: %r01 is %r1.
TEST(Parser, LeadingZerosNameTheSameRegister) {
    const Module m = kernel(".reg .b32 %r<40>;\nadd.u32 %r01, %r1, %r00007;\nmov.u32 %r7, %r0;");
    const auto& o = first_instruction(m).operands;
    EXPECT_EQ(o[0].sym, o[1].sym);
    EXPECT_EQ(o[2].sym, m.functions[0].body.back().operands[0].sym);
    EXPECT_EQ(m.at(o[2].sym).name, "%r7");
    body_fault(".reg .b32 %r<4>;\nmov.u32 %r04, 0;");
}

TEST(Parser, InnerScopeHidesOuterRegister) {
    const Module m = kernel(
        ".reg .b64 %d; .reg .b32 x; mov.u32 x, 1; { .reg .b32 x; mov.u32 x, 2; { .reg .f32 x;\n"
        "mov.f32 x, 0f40400000; } mov.u32 x, 3; } mov.u32 x, 4;");
    std::vector<Sym> written;
    for (const Stmt& s : m.functions[0].body)
        if (s.is(Opcode::kMov)) written.push_back(s.operands[0].sym);
    ASSERT_EQ(written.size(), 5u);
    EXPECT_NE(written[0], written[1]);
    EXPECT_NE(written[1], written[2]);
    EXPECT_EQ(m.at(written[2]).type, Type::kF32);
    EXPECT_EQ(written[1], written[3]);
    EXPECT_EQ(written[0], written[4]);
}

TEST(Parser, InnerRangeHidesOuterRegisterUsedBefore) {
    const Module m = kernel(
        ".reg .b32 %r<4>; mov.u32 %r1, 1; { .reg .f32 %r<2>; mov.f32 %r1, 0f00000000; } "
        "mov.u32 %r1, 2;");
    std::vector<Sym> written;
    for (const Stmt& s : m.functions[0].body)
        if (s.is(Opcode::kMov)) written.push_back(s.operands[0].sym);
    EXPECT_EQ(written[0], written[2]);
    EXPECT_NE(written[0], written[1]);
}

TEST(Parser, OuterRangeRegisterFirstUsedInsideStaysAfterwards) {
    const Module m = kernel(".reg .b32 %r<4>; { mov.u32 %r1, 1; } mov.u32 %r1, 2;");
    std::vector<Sym> written;
    for (const Stmt& s : m.functions[0].body)
        if (s.is(Opcode::kMov)) written.push_back(s.operands[0].sym);
    EXPECT_EQ(written[0], written[1]);
}

TEST(Parser, LabelsResolveForwardAndInnermost) {
    const Module m = kernel("L: { bra L; L: ret; } bra M; bra L; M: exit;");
    std::vector<Sym> targets, labels;
    for (const Stmt& s : m.functions[0].body) {
        if (s.is(Opcode::kBra)) targets.push_back(s.operands[0].sym);
        if (s.kind == Stmt::Kind::kLabel) labels.push_back(s.sym);
    }
    ASSERT_EQ(labels.size(), 3u);
    EXPECT_EQ(targets[0], labels[1]);
    EXPECT_EQ(targets[1], labels[2]);
    EXPECT_EQ(targets[2], labels[0]);
}

TEST(Parser, LabelOfOuterScopeIsFoundFromInside) {
    const Module m = kernel("L: { bra L; }");
    const Stmt& bra = first_instruction(m);
    EXPECT_EQ(bra.operands[0].sym, m.functions[0].body[0].sym);
}

TEST(Parser, UndefinedLabelIsNamedWithItsPlace) {
    const Error e = body_fault("  bra NOWHERE;");
    EXPECT_EQ(e.line, 6u);
    EXPECT_EQ(e.column, 7u);
    EXPECT_NE(e.message.find("NOWHERE"), std::string::npos);
}

TEST(Parser, Guards) {
    const Module m = kernel(".reg .pred %p<3>; @!%p1 ret; @%p2 bra L; L: ret;");
    const Stmt& ret = first_instruction(m);
    EXPECT_TRUE(ret.guard_negated);
    EXPECT_EQ(m.at(ret.guard).name, "%p1");
    body_fault("@%p1 ret;");
    body_fault("@ ret;");
}

TEST(Parser, PairsVectorsSinksAndNegation) {
    const Module m = kernel(
        ".reg .pred p, q, r; .reg .b32 a, b; .reg .f32 %f<8>;\n"
        "setp.lt.and.s32 p|q, a, b, !r;\n"
        "ld.global.v4.f32 {%f1, _, %f3, %f4}, [a];");
    const Stmt& setp = first_instruction(m);
    ASSERT_EQ(setp.operands[0].kind, Operand::Kind::kPair);
    EXPECT_EQ(m.at(setp.operands[0].elems[1].sym).name, "q");
    EXPECT_TRUE(setp.operands[3].negated);
    const Stmt& ld = m.functions[0].body.back();
    EXPECT_EQ(ld.operands[0].elems.size(), 4u);
    EXPECT_EQ(ld.operands[0].elems[1].kind, Operand::Kind::kSink);
    EXPECT_EQ(ld.space(), Space::kGlobal);
    EXPECT_EQ(ld.type(), Type::kF32);
}

TEST(Parser, Addresses) {
    const Module m = kernel(
        ".reg .b64 d; .reg .b32 x; .shared .align 4 .b8 s[64];\n"
        "ld.shared.u32 x, [s+4]; ld.global.u32 x, [d+-8]; ld.global.u32 x, [d+4+8-2*3];\n"
        "ld.shared.u32 x, [16]; ld.param.u32 x, [a];");
    std::vector<const Operand*> at;
    for (const Stmt& s : m.functions[0].body)
        if (s.is(Opcode::kLd)) at.push_back(&s.operands[1]);
    EXPECT_EQ(m.at(at[0]->sym).name, "s");
    EXPECT_EQ(at[0]->value, 4u);
    EXPECT_EQ(static_cast<int64_t>(at[1]->value), -8);
    EXPECT_EQ(at[2]->value, 6u);
    EXPECT_EQ(at[3]->sym, kNoSym);
    EXPECT_EQ(at[3]->value, 16u);
    EXPECT_EQ(m.at(at[4]->sym).kind, Symbol::Kind::kParam);
}

TEST(Parser, Literals) {
    struct Case {
        const char* text;
        Operand::Literal literal;
        uint64_t bits;
    };
    const Case cases[] = {
        {"0x1F", Operand::Literal::kInt, 31},
        {"0XffU", Operand::Literal::kInt, 255},
        {"017", Operand::Literal::kInt, 15},
        {"0", Operand::Literal::kInt, 0},
        {"0b101", Operand::Literal::kInt, 5},
        {"42U", Operand::Literal::kInt, 42},
        {"-1", Operand::Literal::kInt, ~uint64_t{0}},
        {"~0", Operand::Literal::kInt, ~uint64_t{0}},
        {"!5", Operand::Literal::kInt, 0},
        {"18446744073709551615", Operand::Literal::kInt, ~uint64_t{0}},
        {"1+2*3", Operand::Literal::kInt, 7},
        {"(1+2)*3", Operand::Literal::kInt, 9},
        {"1<<4|1", Operand::Literal::kInt, 17},
        {"7%3", Operand::Literal::kInt, 1},
        {"3 > 2 ? 10 : 20", Operand::Literal::kInt, 10},
        {"(.s64)-4/2", Operand::Literal::kInt, static_cast<uint64_t>(-2)},
        {"1 == 1 && 0 != 1", Operand::Literal::kInt, 1},
        {"WARP_SZ", Operand::Literal::kInt, 32},
        {"WARP_SZ-1", Operand::Literal::kInt, 31},
        {"0f3F800000", Operand::Literal::kF32, 0x3F800000},
        {"0F7fc00000", Operand::Literal::kF32, 0x7FC00000},
        {"-0f3F800000", Operand::Literal::kF32, 0xBF800000},
        {"0d3FF0000000000000", Operand::Literal::kF64, 0x3FF0000000000000},
        {"1.5", Operand::Literal::kF64, 0x3FF8000000000000},
        {"-2.0", Operand::Literal::kF64, 0xC000000000000000},
        {"1e3", Operand::Literal::kF64, 0x408F400000000000},
        {"2.5E-1", Operand::Literal::kF64, 0x3FD0000000000000},
    };
    for (const Case& c : cases) {
        const Module m = kernel(".reg .b64 d; mov.b64 d, " + std::string(c.text) + ";");
        const Operand& o = first_instruction(m).operands.at(1);
        EXPECT_EQ(o.kind, Operand::Kind::kImmediate) << c.text;
        EXPECT_EQ(o.literal, c.literal) << c.text;
        EXPECT_EQ(o.value, c.bits) << c.text;
        EXPECT_EQ(o.text, c.text);
    }
}

TEST(Parser, BadLiterals) {
    for (const char* text : {"0x", "0b2", "09", "0f123", "0d00", "18446744073709551616", "1/0",
                             "1%0", "0xZZ", "1.5&2", "12abc", "(1", "-"})
        body_fault(".reg .b64 d; mov.b64 d, " + std::string(text) + ";");
}

TEST(Parser, IntegerMinimumByMinusOneIsNoTrap) {
    const Module m = kernel(".reg .b64 d; mov.b64 d, 0x8000000000000000/-1;");
    EXPECT_EQ(first_instruction(m).operands[1].value, 0x8000000000000000u);
}

TEST(Parser, SpecialRegisters) {
    const Module m = kernel(".reg .b32 x; mov.u32 x, %ctaid.y;\n");
    const Operand& o = first_instruction(m).operands[1];
    EXPECT_EQ(o.kind, Operand::Kind::kSpecial);
    EXPECT_EQ(o.text, "ctaid");
    EXPECT_EQ(o.component, 1);
    body_fault(".reg .b32 x; mov.u32 x, %tidd.x;");
    body_fault(".reg .b32 x; mov.u32 x, %tid.q;");
    EXPECT_EQ(first_instruction(kernel(".reg .b32 x; mov.u32 x, %tid.b;")).operands[1].component,
              2);
}

TEST(Parser, CallForms) {
    const Module m = parsed(std::string(kHead) + R"(
.extern .func (.param .b32 r) callee (.param .b64 p0, .param .b64 p1);
.visible .entry k() {
  .reg .b64 %fn; .reg .b32 %r<3>;
  { .param .b64 param0; .param .b64 param1; .param .b32 retval0;
    call.uni (retval0), callee, (param0, param1);
    prototype_0 : .callprototype (.param .b32 _) _ (.param .b64 _, .param .b64 _);
    call (retval0), %fn, (param0, param1), prototype_0;
    ld.param.b32 %r1, [retval0+0];
  }
  call.uni noargs;
  ret;
}
.func noargs() { ret; }
)");
    std::vector<const Stmt*> calls;
    for (const Stmt& s : m.functions[1].body)
        if (s.is(Opcode::kCall)) calls.push_back(&s);
    ASSERT_EQ(calls.size(), 3u);
    EXPECT_EQ(calls[0]->operands[0].kind, Operand::Kind::kTuple);
    EXPECT_EQ(calls[0]->operands[1].sym, m.functions[0].sym);
    EXPECT_EQ(calls[1]->operands[1].kind, Operand::Kind::kRegister);
    EXPECT_EQ(m.at(calls[1]->operands[3].sym).kind, Symbol::Kind::kLabel);
    EXPECT_EQ(calls[2]->operands[0].sym, m.functions[2].sym);  // used before its declaration
    EXPECT_EQ(m.opaque_count, 0u);
}

TEST(Parser, BranchTargetsAreResolved) {
    const Module m =
        kernel(".reg .b32 %r<2>; ts: .branchtargets L0, L1; brx.idx %r1, ts; L0: ret; L1: ret;");
    for (const Stmt& s : m.functions[0].body) {
        if (s.kind != Stmt::Kind::kDirective) continue;
        ASSERT_EQ(s.operands.size(), 2u);
        EXPECT_EQ(m.at(s.operands[1].sym).name, "L1");
    }
}

TEST(Parser, TextureAddresses) {
    const Module m = parsed(std::string(kHead) + R"(
.global .texref tex; .global .samplerref smp; .global .surfref srf;
.entry k() { .reg .f32 %f<5>; .reg .b32 %r<5>; .reg .pred %p;
  tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [tex, smp, {%f1, %f2}];
  sust.b.2d.v2.b32.trap [srf, {%r1, %r2}], {%r3, %r4};
  tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}|%p, [tex, {%f1, %f2}];
})");
    EXPECT_EQ(m.opaque_count, 0u);
    const Operand& o = m.functions[0].body[3].operands[1];
    EXPECT_EQ(o.kind, Operand::Kind::kAddress);
    ASSERT_EQ(o.elems.size(), 3u);
    EXPECT_EQ(m.at(o.elems[1].sym).name, "smp");
}

TEST(Parser, Parameters) {
    const Module m = parsed(
        std::string(kHead) +
        ".visible .entry k(.param .u64 .ptr .global .align 16 a, .param .align 8 .b8 s[24],\n"
        ".param .f32 f, .param .u64 .ptr .align 1 q)\n.maxntid 256, 1, 1\n.minnctapersm 2 "
        ".pragma \"nounroll\"; { ret; }");
    const Function& f = m.functions[0];
    ASSERT_EQ(f.params.size(), 4u);
    EXPECT_TRUE(m.at(f.params[0]).pointer_attr);
    EXPECT_EQ(m.at(f.params[0]).pointer_space, Space::kGlobal);
    EXPECT_EQ(m.at(f.params[0]).align, 0u);  // .align of a .ptr is the pointee's
    EXPECT_EQ(m.at(f.params[1]).bytes(), 24u);
    const auto layout = param_layout(m, f);
    EXPECT_EQ(layout[1].offset, 8u);
    EXPECT_EQ(layout[2].offset, 32u);
    EXPECT_EQ(layout[3].offset, 40u);
    ASSERT_EQ(f.directives.size(), 3u);
    EXPECT_EQ(f.directives[0].name, "maxntid");
    EXPECT_EQ(f.directives[0].values, (std::vector<uint32_t>{256, 1, 1}));
}

TEST(Parser, EntryWithoutLinkageOrParameters) {
    const Module m = parsed(std::string(kHead) + ".entry k { ret; }\n.func d { ret; }");
    EXPECT_TRUE(m.functions[0].is_entry);
    EXPECT_TRUE(m.functions[0].linkage.empty());
    EXPECT_FALSE(m.functions[1].is_entry);
    EXPECT_NE(m.find("k"), nullptr);
    EXPECT_EQ(m.find("nope"), nullptr);
}

TEST(Parser, RegisterParameters) {
    const Module m = parsed(std::string(kHead) +
                            ".func (.reg .b32 out) f (.reg .b32 in) { add.u32 out, in, 1; ret; }");
    const Stmt& add = first_instruction(m);
    EXPECT_EQ(add.operands[0].sym, m.functions[0].returns[0]);
    EXPECT_EQ(add.operands[1].sym, m.functions[0].params[0]);
}

TEST(Parser, Initialisers) {
    const Module m = parsed(std::string(kHead) + R"(
.visible .global .align 4 .b8 data[8] = {1, 2, 0xFF};
.global .u64 p = generic(data)+4;
.global .u64 q[2] = {data, data+8};
.global .b8 bytes[3] = {0xFF(data), 0xFF00(data), 0xFF0000(generic(data)+2)};
.const .f32 f[2] = {1.0, 0f40000000};
.global .s32 grid[2][3] = {{1, 2}, {4}};
.global .u64 table[2] = {late, f};
.extern .shared .align 16 .b8 dynamic[];
.common .global .u32 c;
.global .v4 .f32 v[1] = {{1.0, 2.0, 3.0, 4.0}};
.func late() { ret; }
.global .samplerref s = { addr_mode_0 = clamp_to_border, filter_mode = nearest };
.global .b32 many = 3, more[2] = {4, 5};
)");
    const auto& v = m.variables;
    EXPECT_EQ(v[0].init.size(), 3u);
    EXPECT_EQ(v[0].init[2].value, 255u);
    EXPECT_TRUE(v[1].init[0].generic);
    EXPECT_EQ(v[1].init[0].value, 4u);
    EXPECT_EQ(v[2].init[1].sym, v[0].sym);
    EXPECT_EQ(v[3].init[1].mask_shift, 1);
    EXPECT_EQ(v[3].init[2].mask_shift, 2);
    EXPECT_TRUE(v[3].init[2].generic);
    EXPECT_EQ(v[4].init[0].value, 0x3F800000u);
    ASSERT_EQ(v[5].init.size(), 4u);
    EXPECT_EQ(v[5].init[2].value, 0u);
    EXPECT_EQ(v[5].init[3].value, 4u);
    EXPECT_EQ(v[6].init[0].sym, m.functions[0].sym);
    EXPECT_EQ(m.at(v[7].sym).elements, 0u);
    EXPECT_EQ(v[8].linkage, "common");
    EXPECT_EQ(v[9].init.size(), 4u);
    EXPECT_EQ(v.size(), 13u);
    EXPECT_EQ(v[12].init[1].value, 5u);
}

TEST(Parser, OpaqueIsCountedAndVerbatim) {
    const Module m = kernel(
        ".reg .b32 %r<4>; frobnicate.async.v3 {%r1, %r2}, [%r3+4];\n"
        "add.weird.s32 %r1, %r2, %r3;\n.newdirective 1, 2;\nret;");
    EXPECT_EQ(m.opaque_count, 3u);
    const Stmt& opaque = first_instruction(m);
    EXPECT_EQ(opaque.op, Opcode::kOpaque);
    EXPECT_EQ(opaque.text, "frobnicate.async.v3 {%r1, %r2}, [%r3+4];");
}

TEST(Parser, NewerVersionParsesByStructure) {
    const std::string body =
        "\n.target sm_200\n.entry k() { .reg .b32 %r<3>; mov.u32 %r1, %future.x;\n"
        "mov.u32 %r2, FUTURE_CONSTANT; .reg .q7 %z; ret; }";
    const Module m = parsed(".version 99.3" + body);
    EXPECT_EQ(m.version_major, 99u);
    EXPECT_EQ(m.opaque_count, 3u);
    fault(".version 9.0" + body);
}

TEST(Parser, CommentsEverywhere) {
    const Module m = parsed(
        "/* a */ .version /*b*/ 8.7 // c\n.target sm_90\n.entry/**/k(/*x*/)"
        "{ /* { */ ret /*;*/ ; // }\n }");
    EXPECT_EQ(m.functions[0].body.size(), 1u);
}

TEST(Parser, LocAndSections) {
    const Module m = parsed(std::string(kHead) + R"(
.file 1 "/tmp/a.cu", 1700000000, 4711
.entry k() {
  .loc 1 3 5
  .loc 1 10 3, function_name $L__info_string0, inlined_at 1 20 7
  ret;
}
.section .debug_str {
$L__info_string0:
.b8 95, 90
}
.section .debug_info { .b32 .debug_abbrev .b64 $L__info_string0 }
)");
    EXPECT_EQ(m.functions[0].body.size(), 3u);
    EXPECT_EQ(m.opaque_count, 0u);
    EXPECT_EQ(m.items.size(), 4u);
}

TEST(Parser, Faults) {
    struct Case {
        const char* text;
        uint32_t line, column;
        const char* says;
    };
    const Case cases[] = {
        {"", 1, 1, "'.version'"},
        {"   \n  .entry k(){}", 2, 3, "'.version'"},
        {".version x", 1, 10, "version number"},
        {".version 8.0\n.target 7", 2, 9, "target"},
        {".version 8.0\n.entry (", 2, 9, "parameter"},
        {".version 8.0\n.entry k() { ret", 2, 17, "operand"},
        {".version 8.0\n.entry k() { ret; ", 2, 19, "'}'"},
        {".version 8.0\n.entry k() { { ret; }", 2, 22, "'}'"},
        {".version 8.0\n.entry k() { mov.u32 x, 1; }", 2, 22, "undeclared"},
        {".version 8.0\n.entry k() { .reg .b32 x; .reg .f32 x; }", 2, 37, "twice"},
        {".version 8.0\n.entry k() { .reg .b32 x; add.s32 x, x, ; }", 2, 41, "operand"},
        {".version 8.0\n.entry k() { .reg .b32 x; st.u32 [x, x; }", 2, 39, "']'"},
        {".version 8.0\n\x01", 2, 1, "directive"},
        {".version 8.0\n.global .u32 x = {1, 2;", 2, 23, "'}'"},
        {".version 8.0\n.global .u32 x = y;", 2, 18, "undeclared"},
        {".version 8.0\n/* never closed", 2, 1, "directive"},
        {".version 8.0\n.file 1 \"never closed\n", 2, 9, "operand"},
        {".version 8.0\n.section .x { (}", 2, 16, "match"},
        {".version 8.0\n.version 8.0", 2, 1, "second"},
    };
    for (const Case& c : cases) {
        const Error e = fault(c.text);
        EXPECT_EQ(e.code, Code::kParse) << c.text;
        EXPECT_EQ(e.line, c.line) << c.text << ": " << e.message;
        EXPECT_EQ(e.column, c.column) << c.text << ": " << e.message;
        EXPECT_NE(e.message.find(c.says), std::string::npos) << c.text << ": " << e.message;
    }
}

TEST(Parser, CloneOwnsItsNames) {
    Module copy;
    std::string text;
    {
        Module m = kernel(".reg .b32 %r<3>; add.s32 %r1, %r2, 1; ret;");
        const Sym fresh = m.add_register(0, Type::kU32, "%t");
        m.functions[0].body[1].operands[0].sym = fresh;
        m.functions[0].body[1].operands[2].text = m.intern("0x2");
        m.functions[0].body[1].operands[2].value = 2;
        copy = m.clone();
        text = print(m);
    }
    EXPECT_EQ(print(copy), text);
    EXPECT_NE(text.find(".reg .u32 %t$"), std::string::npos);
    EXPECT_TRUE(parse(text).ok());
    EXPECT_TRUE(verify(copy).ok());
}

TEST(Parser, LimitsAreKept) {
    Limits small;
    small.max_bytes = 8;
    const auto m = parse(std::string(kHead), small);
    ASSERT_FALSE(m.ok());
    EXPECT_EQ(m.error().code, Code::kExhausted);
    EXPECT_FALSE(parse(std::shared_ptr<const std::string>()).ok());
}

}  // namespace
}  // namespace ttt::ptx
