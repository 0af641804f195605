#include <gtest/gtest.h>

#include "ptx/ir.h"

namespace ttt::ptx {
namespace {

// A sound kernel that each test breaks in one way.
class Verifier : public testing::Test {
  protected:
    void SetUp() override {
        auto module = parse(std::string(R"(.version 8.7
.target sm_90
.address_size 64
.entry k(.param .u64 a) {
  .reg .pred %p<3>; .reg .b32 %r<5>; .reg .b64 %d<3>; .reg .f32 %f<3>;
  add.s32 %r1, %r2, %r3;
  @%p1 bra L;
  mul.wide.s32 %d1, %r1, 4;
  setp.eq.f32 %p2, %f1, %f2;
L:
  { .reg .b32 %x; mov.u32 %x, %r1; }
  shl.b64 %d2, %d1, %r1;
  ret;
}
.entry other() { .reg .b32 %r<3>; mov.u32 %r1, 0; M: ret; }
)"));
        ASSERT_TRUE(module.ok()) << module.error().str();
        m_ = std::move(module).value();
        ASSERT_TRUE(verify(m_).ok());
    }
    Stmt& first(Opcode op) {
        for (Stmt& s : m_.functions[0].body)
            if (s.is(op)) return s;
        ADD_FAILURE();
        return m_.functions[0].body[0];
    }
    Sym named(std::string_view name, size_t nth = 0) const {
        for (Sym i = 0; i < m_.symbols.size(); ++i)
            if (m_.symbols[i].name == name && nth-- == 0) return i;
        ADD_FAILURE() << name;
        return kNoSym;
    }
    void expect_broken(const char* rule) {
        const Status status = verify(m_);
        ASSERT_FALSE(status.ok()) << rule;
        EXPECT_EQ(status.error().code, Code::kInternal);
        EXPECT_NE(status.error().message.find(rule), std::string::npos) << status.error().message;
        EXPECT_NE(status.error().message.find("function k"), std::string::npos)
            << status.error().message;
    }

    Module m_;
};

TEST_F(Verifier, DestinationIsARegister) {
    first(Opcode::kAdd).operands[0] = first(Opcode::kMul).operands[2];
    expect_broken("destination is no register");
}

TEST_F(Verifier, DestinationExists) {
    first(Opcode::kAdd).operands.clear();
    expect_broken("destination is missing");
}

TEST_F(Verifier, SizeOfOperands) {
    first(Opcode::kAdd).operands[1].sym = named("%d1");
    expect_broken("another size");
}

TEST_F(Verifier, WideResultIsTwiceAsWide) {
    first(Opcode::kMul).operands[0].sym = named("%r1");
    expect_broken("another size");
}

TEST_F(Verifier, ClassOfOperands) {
    first(Opcode::kSetp).mods[1] = Mod::kS32;
    expect_broken("another class");
}

TEST_F(Verifier, ComparisonWritesPredicates) {
    first(Opcode::kSetp).operands[0].sym = named("%r1");
    expect_broken("should be a predicate");
}

TEST_F(Verifier, ShiftAmountIs32Bits) {
    first(Opcode::kShl).operands[2].sym = named("%d1");
    expect_broken("shift amount");
}

TEST_F(Verifier, GuardIsAPredicate) {
    first(Opcode::kBra).guard = named("%r1");
    expect_broken("guard is no predicate");
}

TEST_F(Verifier, LabelIsDefined) {
    auto& body = m_.functions[0].body;
    std::erase_if(body, [](const Stmt& s) { return s.kind == Stmt::Kind::kLabel; });
    expect_broken("label is not defined");
}

TEST_F(Verifier, LabelOfAnotherFunction) {
    first(Opcode::kBra).operands[0].sym = named("M");
    expect_broken("label is not defined");
}

TEST_F(Verifier, LabelOnce) {
    auto& body = m_.functions[0].body;
    for (size_t i = 0; i < body.size(); ++i)
        if (body[i].kind == Stmt::Kind::kLabel) {
            body.push_back(body[i]);
            break;
        }
    expect_broken("defined twice");
}

TEST_F(Verifier, BranchHasALabel) {
    first(Opcode::kBra).operands[0] = first(Opcode::kAdd).operands[0];
    expect_broken("branch without a label");
}

TEST_F(Verifier, RegisterOfAnotherFunction) {
    first(Opcode::kAdd).operands[0].sym = named("%r1", 1);
    expect_broken("another function");
}

TEST_F(Verifier, RegisterOutOfScope) {
    first(Opcode::kAdd).operands[1].sym = named("%x");
    expect_broken("not declared in this scope");
}

TEST_F(Verifier, RegisterHiddenByAnother) {
    // mov inside the block now means the outer %r1, but a new declaration hides it.
    auto& body = m_.functions[0].body;
    for (Stmt& s : body)
        if (s.kind == Stmt::Kind::kRegisters && s.text.find("%x") != Name::npos)
            s.text = ".reg .f32 %x, %r1;";
    expect_broken("hidden by another declaration");
}

TEST_F(Verifier, DeclarationRemoved) {
    auto& body = m_.functions[0].body;
    std::erase_if(body, [](const Stmt& s) {
        return s.kind == Stmt::Kind::kRegisters && s.text.find("%f") != Name::npos;
    });
    expect_broken("not declared");
}

TEST_F(Verifier, ScopesBalance) {
    auto& body = m_.functions[0].body;
    Stmt open;
    open.kind = Stmt::Kind::kScopeBegin;
    body.push_back(open);
    expect_broken("never closed");
    body.back().kind = Stmt::Kind::kScopeEnd;
    expect_broken("closed that was not opened");
}

TEST_F(Verifier, SymbolsExist) {
    first(Opcode::kAdd).operands[1].sym = 100000;
    expect_broken("names no symbol");
}

TEST_F(Verifier, OpaqueHasText) {
    first(Opcode::kAdd).op = Opcode::kOpaque;
    expect_broken("opaque instruction without text");
}

TEST_F(Verifier, ErrorNamesTheStatement) {
    Stmt& add = first(Opcode::kAdd);
    add.operands[1].sym = named("%d1");
    const Status status = verify(m_);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("statement " + std::to_string(add.id)),
              std::string::npos);
    EXPECT_NE(status.error().message.find("add.s32 %r1, %d1, %r3;"), std::string::npos);
}

TEST_F(Verifier, ItemsNameWhatExists) {
    m_.items.push_back({Item::Kind::kFunction, 99, {}});
    EXPECT_FALSE(verify(m_).ok());
}

}  // namespace
}  // namespace ttt::ptx
