// Command line of `ttt`: the only file that knows CLI11. What each command does is in the file
// named after it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>

#include "commands.h"

namespace ttt::cli {
namespace {

// The program to run comes after "--", untouched: its own options must never be read as ours.
std::vector<std::string> take_command(std::vector<std::string>& args) {
    const auto dashes = std::find(args.begin(), args.end(), "--");
    if (dashes == args.end()) return {};
    std::vector<std::string> command(dashes + 1, args.end());
    args.erase(dashes, args.end());
    return command;
}

// A word of digits only is a process id; anything else names a file.
int as_pid(const std::string& text) {
    const bool digits = !text.empty() && text.size() < 10 &&
                        text.find_first_not_of("0123456789") == std::string::npos;
    return digits ? std::stoi(text) : 0;
}

struct Parsed {
    RunOptions run;
    StatusOptions status;
    KernelOptions kernel;
    std::vector<std::string> files;
    std::string target;
    int pid = 0;
    bool json = false;
    std::function<int()> chosen;
};

void add_json(CLI::App* command, bool& json) { command->add_flag("--json", json, "print JSON"); }

void add_emulate(CLI::App* command, std::string& profile) {
    command->add_option("--emulate", profile, "run on the emulated GPU with this profile")
        ->check(CLI::IsMember({"h200", "orin", "thor"}));
}

void add_process_commands(CLI::App& app, Parsed& p) {
    auto* run_command =
        app.add_subcommand("run", "run a program under libttt.so: ttt run [OPTIONS] -- CMD...");
    run_command->add_option("--mode", p.run.mode, "how far to go")
        ->check(CLI::IsMember({"observe", "tune", "apply"}));
    run_command
        ->add_option("--foreground", p.run.foreground,
                     "tune at first launches, at most this many seconds")
        ->check(CLI::NonNegativeNumber);
    run_command->add_option("--report", p.run.report, "write the JSON report to this file");
    add_emulate(run_command, p.run.emulate);
    add_json(run_command, p.run.json);
    run_command->callback([&p] { p.chosen = [&p] { return run(p.run); }; });

    auto* status_command =
        app.add_subcommand("status", "what is being tuned, in one process or all");
    status_command->add_option("PID", p.status.pid, "process under libttt.so")
        ->check(CLI::PositiveNumber);
    add_json(status_command, p.status.json);
    status_command->callback([&p] { p.chosen = [&p] { return status(p.status); }; });

    for (const char* name : {"off", "on"}) {
        auto* command = app.add_subcommand(
            name, std::string(name) == "off" ? "restore the original kernels in a running process"
                                             : "undo `ttt off`");
        command->add_option("PID", p.pid, "process under libttt.so")
            ->required()
            ->check(CLI::PositiveNumber);
        add_json(command, p.json);
        command->callback(
            [&p, name] { p.chosen = [&p, name] { return switch_process(p.pid, name, p.json); }; });
    }
}

void add_kernel_inputs(CLI::App* command, Parsed& p, bool spec_required) {
    command->add_option("FILE", p.kernel.file, "PTX file")->required();
    auto* spec = command->add_option("--launch", p.kernel.spec, "launch spec, JSON");
    if (spec_required) spec->required();
}

void add_explain(CLI::App& app, Parsed& p) {
    auto* command = app.add_subcommand(
        "explain", "why kernels are, or are not, tuned: of a process or of a PTX file");
    command->add_option("TARGET", p.target, "PID or FILE.ptx")->required();
    command->add_option("--launch", p.kernel.spec, "launch spec, JSON (with a file)");
    add_json(command, p.kernel.json);
    command->callback([&p] {
        p.chosen = [&p] {
            if (const int pid = as_pid(p.target); pid > 0) {
                if (!p.kernel.spec.empty())
                    return complain(kUsage, "explain PID takes no --launch");
                return explain_process(pid, p.kernel.json);
            }
            p.kernel.file = p.target;
            return explain_file(p.kernel);
        };
    });
}

void add_ptx_commands(CLI::App& app, Parsed& p) {
    auto* ptx = app.add_subcommand("ptx", "look at, execute or rewrite PTX files");
    ptx->require_subcommand(1);
    auto* check = ptx->add_subcommand("check", "parse, print and parse again");
    check->add_option("FILE", p.files, "PTX files")->required();
    add_json(check, p.json);
    check->callback([&p] { p.chosen = [&p] { return ptx_check(p.files, p.json); }; });

    auto* exec = ptx->add_subcommand("exec", "execute one launch in the interpreter");
    add_kernel_inputs(exec, p, true);
    add_json(exec, p.kernel.json);
    exec->callback([&p] { p.chosen = [&p] { return ptx_exec(p.kernel); }; });

    auto* apply = ptx->add_subcommand("apply", "apply a recipe");
    add_kernel_inputs(apply, p, false);
    apply->add_option("--recipe", p.kernel.recipe, "e.g. \"pin_rounding | registers(max=48)\"")
        ->required();
    apply->add_option("-o,--output", p.kernel.out, "file to write, - for stdout")->required();
    apply->add_option("--entry", p.kernel.entry,
                      "kernel, where the file has several and no spec names one");
    apply->add_option("--arch", p.kernel.arch, "architecture, e.g. sm_90");
    add_json(apply, p.kernel.json);
    apply->callback([&p] { p.chosen = [&p] { return ptx_apply(p.kernel); }; });
}

void add_tuning_commands(CLI::App& app, Parsed& p) {
    auto* list = app.add_subcommand(
        "variants", "recipes the search would try on a kernel, and why not the others");
    add_kernel_inputs(list, p, true);
    list->add_option("--arch", p.kernel.arch, "architecture, e.g. sm_90");
    add_json(list, p.kernel.json);
    list->callback([&p] { p.chosen = [&p] { return variants(p.kernel); }; });

    auto* whole = app.add_subcommand("tune", "the whole loop on one kernel, with generated inputs");
    add_kernel_inputs(whole, p, true);
    whole->add_option("--budget", p.kernel.budget, "seconds")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    add_emulate(whole, p.kernel.emulate);
    add_json(whole, p.kernel.json);
    whole->callback([&p] { p.chosen = [&p] { return tune(p.kernel); }; });

    auto* bench = app.add_subcommand("bench", "measure what libttt.so costs");
    bench->require_subcommand(1);
    auto* launch =
        bench->add_subcommand("launch", "nanoseconds added to a launch, against the null driver");
    add_json(launch, p.json);
    launch->callback([&p] { p.chosen = [&p] { return bench_launch(p.json); }; });

    auto* check = app.add_subcommand("doctor", "is everything in place, and if not, what to do");
    add_json(check, p.json);
    check->callback([&p] { p.chosen = [&p] { return doctor(p.json); }; });
}

std::string one_line(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

// The first word that should be a command and is none; CLI11 would only say that one is required.
std::string unknown_command(const CLI::App& app, const std::vector<std::string>& args) {
    const CLI::App* level = &app;
    for (const auto& word : args) {
        if (level->get_subcommands([](const CLI::App*) { return true; }).empty()) return {};
        if (word.starts_with("-")) continue;
        const auto next = level->get_subcommands(
            [&word](const CLI::App* command) { return command->check_name(word); });
        if (next.empty()) return word;
        level = next.front();
    }
    return {};
}

int dispatch(std::vector<std::string> args) {
    Parsed p;
    CLI::App app{"ttt: faster CUDA kernels while the program runs, with the same bits", "ttt"};
    app.require_subcommand(1);
    app.set_version_flag("--version", TTT_VERSION);
    add_process_commands(app, p);
    add_explain(app, p);
    add_ptx_commands(app, p);
    add_tuning_commands(app, p);
    p.run.command = take_command(args);
    const bool is_run = !args.empty() && args.front() == "run";
    if (!is_run && !p.run.command.empty())
        return complain(kUsage, "only `ttt run` takes a command after --");
    if (const auto word = unknown_command(app, args); !word.empty())
        return complain(kUsage, "no command '" + word + "' (see ttt --help)");
    try {
        std::reverse(args.begin(), args.end());
        app.parse(std::move(args));
    } catch (const CLI::Success& help) {
        return app.exit(help);
    } catch (const CLI::ParseError& wrong) {
        return complain(kUsage, one_line(wrong.what()) + " (see ttt --help)");
    }
    if (is_run && p.run.command.empty())
        return complain(kUsage, "run: the program to run goes after --, e.g. ttt run -- ./a.out");
    return p.chosen();
}

}  // namespace

int complain(int code, std::string_view what) {
    std::fprintf(stderr, "ttt: %.*s\n", static_cast<int>(what.size()), what.data());
    return code;
}

}  // namespace ttt::cli

int main(int argc, char** argv) {
    try {
        return ttt::cli::dispatch({argv + 1, argv + argc});
    } catch (const std::bad_alloc&) {
        return ttt::cli::complain(ttt::cli::kFailed, "out of memory");
    } catch (const std::exception& e) {
        return ttt::cli::complain(ttt::cli::kFailed, std::string("internal error: ") + e.what());
    }
}
