// Trials: kernels that read module variables. A published variant reads the program's own; a timed
// one those of a copy of the program's module, which hold the recorded bytes.
#include "session/driver_section.h"
#include "session/trials.h"

namespace ttt::session {
namespace {

constexpr uint64_t kMaxCopyBytes = uint64_t{256} << 20;

}  // namespace

bool Trials::awaits_renewal(const Trial& t) const {
    const uint64_t valid = t.function->valid_epoch.load();
    return valid != 0 && valid != shared_.functions.epoch();
}

Status Trials::find_variables(const Trial& t, SnapshotJob& job) {
    const Module* module = t.site->kernel->module;
    if (module == nullptr) return make_error(Code::kNotFound, "the kernel's module is not known");
    const DriverSection section(shared_, t.context->context, module->handle);
    // Looked at inside the section: an unload that began before it need not wait for us.
    if (!section.ok() || t.function->valid_epoch.load() != shared_.functions.epoch())
        return make_error(Code::kNotFound, "the program drops modules");
    for (measure::Region& r : job.regions) {
        if (r.variable.empty()) continue;
        TTT_TRY(r.address, variable_address(shared_.driver, *module, r.variable, r.bytes));
    }
    return ok_status();
}

void Trials::on_original(const ipc::OriginalCopy& m, int fd) {
    Trial* t = trial(m.site_id());
    if (t == nullptr || t->copy != nullptr) return;
    auto v = std::make_unique<Variant>();
    v->entry = m.entry() != nullptr ? m.entry()->str() : "";
    v->max_registers = m.jit_max_registers();
    v->opt_level = m.jit_opt_level();
    auto bytes = fd >= 0 ? ipc::read_memfd(fd, kMaxCopyBytes)
                         : Result<std::vector<std::byte>>(make_error(Code::kProtocol, "no module"));
    if (!bytes.ok() || bytes->empty() || bytes->size() != m.size()) {
        v->refused = "no copy of the program's module could be made";
    } else {
        v->image = std::move(*bytes);
        v->image.push_back(std::byte{0});
    }
    t->copy = std::move(v);
}

Status Trials::lead_to_program(Trial& t, Variant& v) {
    if (v.cells.empty() || v.leads_to == Variant::LeadsTo::kProgram) return ok_status();
    const Module* module = t.site->kernel->module;
    if (module == nullptr || t.function->valid_epoch.load() != shared_.functions.epoch())
        return make_error(Code::kNotFound, "the program drops modules");
    v.leads_to = Variant::LeadsTo::kNothing;
    TTT_CHECK_OK(fill_cells(
        shared_.driver, v.module, v.cells,
        [&](const VariableCell& c) {
            return variable_address(shared_.driver, *module, c.variable, c.bytes);
        },
        t.context->stream));
    v.leads_to = Variant::LeadsTo::kProgram;
    return ok_status();
}

Status Trials::lead_to_copy(Trial& t, Variant& v) {
    if (v.leads_to == Variant::LeadsTo::kCopy) return ok_status();
    if (v.cells.empty())
        return make_error(Code::kDriver, "the variant does not read the program's variables");
    if (t.copy == nullptr)
        return make_error(Code::kNotFound, "there is no copy of the program's module");
    const Driver& d = shared_.driver;
    TTT_CHECK_OK(load(t, *t.copy));
    for (const measure::Region& r : t.job->regions) {
        if (r.variable.empty()) continue;
        TTT_TRY(const uint64_t at, variable_address(d, t.copy->module, r.variable, r.bytes));
        if (d.cuMemcpyDtoDAsync_v2(at, t.arena.base + r.pre_offset, r.bytes, t.context->stream) !=
            CUDA_SUCCESS)
            return make_error(Code::kDriver, "a module variable could not be filled");
    }
    v.leads_to = Variant::LeadsTo::kNothing;
    TTT_CHECK_OK(fill_cells(
        d, v.module, v.cells,
        [&](const VariableCell& c) {
            return variable_address(d, t.copy->module, c.variable, c.bytes);
        },
        t.context->stream));
    v.leads_to = Variant::LeadsTo::kCopy;
    return ok_status();
}

}  // namespace ttt::session
