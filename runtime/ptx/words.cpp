#include "ptx/words.h"

#include <array>
#include <cstring>

namespace ttt::ptx {
namespace {

constexpr OpcodeInfo kOpcodes[] = {
    {"", 0, 0},
#define TTT_OPCODE(e, spelling, dests, flags) {spelling, dests, flags},
#include "ptx/opcodes.def"
#undef TTT_OPCODE
};

constexpr std::string_view kMods[] = {
    "",
#define TTT_MODIFIER(e, spelling) spelling,
#include "ptx/modifiers.def"
#undef TTT_MODIFIER
};

struct TypeInfo {
    std::string_view spelling;
    uint32_t bits;
    char cls;
};

constexpr TypeInfo kTypes[] = {
    {"", 0, 'O'},
#define TTT_TYPE(e, spelling, bits, cls) {spelling, bits, #cls[0]},
#include "ptx/names.def"
#undef TTT_TYPE
};

constexpr std::string_view kSpecials[] = {
    "",
#define TTT_SPECIAL(spelling) spelling,
#include "ptx/special_registers.def"
#undef TTT_SPECIAL
};

constexpr size_t kModCount = std::size(kMods);

constexpr uint32_t hash_word(std::string_view word) {
    uint32_t h = 2166136261u;
    for (char c : word) h = (h ^ static_cast<unsigned char>(c)) * 16777619u;
    return h ^ (h >> 15);
}

// Open addressing over the indices of a spelling list; index 0 (the empty word) means "not there".
template <size_t kSlots>
class WordTable {
  public:
    constexpr void add(std::string_view word, size_t index) {
        size_t slot = hash_word(word) % kSlots;
        while (index_[slot] != 0) slot = (slot + 1) % kSlots;
        index_[slot] = static_cast<uint16_t>(index);
    }
    template <typename SpellingOf>
    constexpr size_t find(std::string_view word, SpellingOf spelling_of) const {
        for (size_t slot = hash_word(word) % kSlots; index_[slot] != 0; slot = (slot + 1) % kSlots)
            if (spelling_of(index_[slot]) == word) return index_[slot];
        return 0;
    }

  private:
    std::array<uint16_t, kSlots> index_{};
};

constexpr auto opcode_spelling = [](size_t i) { return kOpcodes[i].spelling; };
constexpr auto mod_spelling = [](size_t i) { return kMods[i]; };
constexpr auto type_spelling = [](size_t i) { return kTypes[i].spelling; };
constexpr auto special_spelling = [](size_t i) { return kSpecials[i]; };

template <size_t kSlots, size_t kCount, typename SpellingOf>
constexpr WordTable<kSlots> table_of(SpellingOf spelling_of) {
    static_assert(kCount * 2 <= kSlots, "too many words: enlarge the table");
    WordTable<kSlots> table;
    for (size_t i = 1; i < kCount; ++i) table.add(spelling_of(i), i);
    return table;
}

constexpr auto kOpcodeTable = table_of<512, std::size(kOpcodes)>(opcode_spelling);
constexpr auto kModTable = table_of<2048, std::size(kMods)>(mod_spelling);
constexpr auto kTypeTable = table_of<128, std::size(kTypes)>(type_spelling);
constexpr auto kSpecialTable = table_of<512, std::size(kSpecials)>(special_spelling);

constexpr std::array<Type, kModCount> make_mod_types() {
    std::array<Type, kModCount> types{};
    for (size_t i = 1; i < kModCount; ++i)
        types[i] = static_cast<Type>(kTypeTable.find(kMods[i], type_spelling));
    return types;
}
constexpr std::array<Type, kModCount> kModTypes = make_mod_types();

}  // namespace

uint32_t bit_size(Type type) { return kTypes[static_cast<size_t>(type)].bits; }
bool is_float(Type type) { return kTypes[static_cast<size_t>(type)].cls == 'F'; }
bool is_signed(Type type) { return kTypes[static_cast<size_t>(type)].cls == 'S'; }
std::string_view spelling(Type type) { return kTypes[static_cast<size_t>(type)].spelling; }
const OpcodeInfo& info(Opcode op) { return kOpcodes[static_cast<size_t>(op)]; }
std::string_view spelling(Mod mod) { return kMods[static_cast<size_t>(mod)]; }
Type type_of(Mod mod) { return kModTypes[static_cast<size_t>(mod)]; }

Space space_of(Mod mod) {
    switch (mod) {
        case Mod::kGlobal:
            return Space::kGlobal;
        case Mod::kShared:
        case Mod::kSharedCta:
        case Mod::kSharedCluster:
            return Space::kShared;
        case Mod::kLocal:
            return Space::kLocal;
        case Mod::kConst:
            return Space::kConst;
        case Mod::kParam:
        case Mod::kParamEntry:
        case Mod::kParamFunc:
            return Space::kParam;
        case Mod::kTex:
            return Space::kTex;
        case Mod::kReg:
            return Space::kReg;
        default:
            return Space::kGeneric;
    }
}

Opcode find_opcode(std::string_view word) {
    return static_cast<Opcode>(kOpcodeTable.find(word, opcode_spelling));
}
Mod find_mod(std::string_view word) { return static_cast<Mod>(kModTable.find(word, mod_spelling)); }
Type find_type(std::string_view word) {
    return static_cast<Type>(kTypeTable.find(word, type_spelling));
}
bool is_special_register(std::string_view word) {
    return kSpecialTable.find(word, special_spelling) != 0;
}

}  // namespace ttt::ptx
