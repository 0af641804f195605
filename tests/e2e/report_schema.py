"""What a report and its sites must contain (docs/cli.md, "Report"). Used by the tests of `ttt tune`, of the chain and the demo."""
FINAL_STATES = {"ineligible", "observed", "validated", "committed", "kept", "rolled_back", "failed"}
STATES = FINAL_STATES | {"hot", "snapshot", "tuning", "canary"}
OUTCOMES = {"accept", "reject", "unknown"}
NUMBER = (int, float)
SITE = {"name": str, "grid": list, "block": list, "shared": int, "launches": int, "share": NUMBER, "eligible": bool, "reason": str,
        "tried": int, "verdicts": list, "base_us": NUMBER, "best_us": NUMBER, "speedup": NUMBER, "bit_exact": bool, "state": str}
MAY_BE_NULL = {"share", "base_us", "best_us", "speedup", "bit_exact"}


def site_problems(site):
    """Every way in which a site object is not as promised; empty when it is."""
    problems = []
    for key, kind in SITE.items():
        if key not in site:
            problems.append(f"{key} is missing")
        elif not (site[key] is None and key in MAY_BE_NULL) and (not isinstance(site[key], kind) or isinstance(site[key], bool) and kind is not bool):
            problems.append(f"{key} is {site[key]!r}")
    if problems:
        return problems
    for key in ("grid", "block"):
        if len(site[key]) != 3 or not all(isinstance(n, int) and n > 0 for n in site[key]):
            problems.append(f"{key} is {site[key]}")
    if site["share"] is not None and not 0 <= site["share"] <= 1:
        problems.append(f"share is {site['share']}")
    for verdict in site["verdicts"]:
        missing = {"recipe", "gate", "outcome", "evidence"} - set(verdict)
        if missing or verdict["outcome"] not in OUTCOMES:
            problems.append(f"verdict {verdict}")
    if site["state"] not in STATES:
        problems.append(f"state is {site['state']}")
    if site["state"] == "ineligible" and not site["reason"]:
        problems.append("ineligible without a reason")
    if site["state"] == "committed":
        if site["bit_exact"] is not True:
            problems.append("committed without bit_exact")
        if site["speedup"] is None or site["speedup"] <= 1 or site["best_us"] >= site["base_us"]:
            problems.append(f"committed, but not faster: {site['base_us']} -> {site['best_us']}, {site['speedup']}x")
    return problems


def report_problems(report):
    if not isinstance(report, dict) or not isinstance(report.get("sites"), list):
        return ["no list of sites"]
    return [f"{site.get('name')}: {p}" for site in report["sites"] for p in site_problems(site)]
