// One kernel with what apply() needs to know about its launch.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "xform/transform.h"

namespace ttt::xform::test {

inline constexpr const char* kHeader = ".version 8.0\n.target sm_90\n.address_size 64\n";

inline std::string read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    EXPECT_TRUE(in.good()) << path;
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

class KernelCase {
  public:
    // `text` is a module, or the parameters and body of a kernel "k" when it starts with '('.
    explicit KernelCase(std::string text, std::string entry = "k") {
        if (text.starts_with('(')) text = kHeader + (".visible .entry k" + text);
        Result<ptx::Module> parsed = ptx::parse(std::move(text));
        if (!parsed.ok()) {
            ADD_FAILURE() << parsed.error().str();
            return;
        }
        module_ = std::make_unique<ptx::Module>(std::move(parsed).value());
        facts.entry = std::move(entry);
        facts.grid = {4, 1, 1};
        facts.block = {256, 1, 1};
        const ptx::Function* function = module_->find(facts.entry);
        if (function == nullptr) {
            ADD_FAILURE() << "no entry " << facts.entry;
            return;
        }
        const auto layout = ptx::param_layout(*module_, *function);
        if (!layout.empty()) facts.params.resize(layout.back().offset + layout.back().size);
        facts.stable.assign(layout.size(), true);
        summary = ptx::summarise(*module_, *function);
    }

    const ptx::Module& module() const { return *module_; }
    Context context() const {
        Context out{facts, summary, std::nullopt, pinning};
        return out;
    }
    Result<Applied> apply(std::string_view recipe) const {
        Result<Recipe> parsed = Recipe::parse(recipe);
        if (!parsed.ok()) return std::move(parsed).error();
        return xform::apply(*parsed, *module_, context());
    }
    // Text of the variant; the error's text, with a mark in front, when the recipe does not apply.
    std::string text(std::string_view recipe) const {
        const Result<Applied> applied = apply(recipe);
        return applied.ok() ? ptx::print(applied->module) : "error: " + applied.error().str();
    }
    void set_param(size_t offset, uint64_t value, size_t bytes) {
        for (size_t i = 0; i < bytes; ++i)
            facts.params.at(offset + i) = static_cast<std::byte>(value >> (8 * i));
    }

    ptx::LaunchFacts facts;
    ptx::KernelSummary summary;
    std::optional<Context::Pinning> pinning;

  private:
    std::unique_ptr<ptx::Module> module_;
};

inline bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

}  // namespace ttt::xform::test
