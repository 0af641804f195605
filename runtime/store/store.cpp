#include "store/store.h"

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

namespace ttt::store {
namespace {

constexpr int kSchemaVersion = 1;
constexpr int kBusyMilliseconds = 2000;  // several tuners may share the file

constexpr char kSchema[] =
    "CREATE TABLE IF NOT EXISTS winner ("
    " kernel TEXT NOT NULL, site TEXT NOT NULL, guard TEXT NOT NULL, gpu TEXT NOT NULL,"
    " driver TEXT NOT NULL, compiler TEXT NOT NULL,"
    " recipe TEXT NOT NULL, speedup REAL NOT NULL, evidence TEXT NOT NULL, written INTEGER NOT "
    "NULL,"
    " PRIMARY KEY (kernel, site, guard, gpu, driver, compiler)) WITHOUT ROWID;";

struct CloseDatabase {
    void operator()(sqlite3* db) const { sqlite3_close(db); }
};
struct FinalizeStatement {
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

Error sql_error(sqlite3* db, const char* what) {
    return make_error(Code::kIo, std::string("store: ") + what + ": " +
                                     (db != nullptr ? sqlite3_errmsg(db) : "out of memory"));
}

Status execute(sqlite3* db, const char* sql, const char* what) {
    if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return sql_error(db, what);
    return ok_status();
}

Result<Statement> prepare(sqlite3* db, const char* sql) {
    sqlite3_stmt* raw = nullptr;
    if (sqlite3_prepare_v2(db, sql, -1, &raw, nullptr) != SQLITE_OK)
        return sql_error(db, "prepare");
    return Statement(raw);
}

void bind(sqlite3_stmt* s, int at, const std::string& text) {
    sqlite3_bind_text(s, at, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}

// The six key columns, from parameter 1 on.
void bind_key(sqlite3_stmt* s, const Key& key) {
    bind(s, 1, key.kernel.hex());
    bind(s, 2, key.site.hex());
    bind(s, 3, key.guard);
    bind(s, 4, key.gpu);
    bind(s, 5, key.driver);
    bind(s, 6, key.compiler);
}

std::string column(sqlite3_stmt* s, int at) {
    const unsigned char* text = sqlite3_column_text(s, at);
    if (text == nullptr) return {};
    return {reinterpret_cast<const char*>(text), static_cast<size_t>(sqlite3_column_bytes(s, at))};
}

Result<int> schema_version(sqlite3* db) {
    TTT_TRY(Statement s, prepare(db, "PRAGMA user_version"));
    if (sqlite3_step(s.get()) != SQLITE_ROW) return sql_error(db, "reading the schema version");
    return sqlite3_column_int(s.get(), 0);
}

Status prepare_schema(sqlite3* db) {
    TTT_TRY(const int version, schema_version(db));
    if (version > kSchemaVersion)
        return make_error(Code::kUnsupported, "store: file has schema " + std::to_string(version) +
                                                  ", newer than this program's " +
                                                  std::to_string(kSchemaVersion));
    if (version == kSchemaVersion) return ok_status();
    TTT_CHECK_OK(execute(db, kSchema, "creating the table"));
    const std::string stamp = "PRAGMA user_version = " + std::to_string(kSchemaVersion);
    return execute(db, stamp.c_str(), "stamping the schema version");
}

class SqliteStore final : public Store {
  public:
    explicit SqliteStore(Database db) : db_(std::move(db)) {}

    Status put(const Key& key, const Winner& winner) override {
        TTT_TRY(Statement s, prepare(db_.get(),
                                     "INSERT OR REPLACE INTO winner VALUES (?,?,?,?,?,?,?,?,?,"
                                     "CAST(strftime('%s','now') AS INTEGER))"));
        bind_key(s.get(), key);
        bind(s.get(), 7, winner.recipe);
        sqlite3_bind_double(s.get(), 8, winner.speedup);
        bind(s.get(), 9, winner.evidence);
        if (sqlite3_step(s.get()) != SQLITE_DONE) return sql_error(db_.get(), "writing a winner");
        return ok_status();
    }

    Result<std::optional<Winner>> get(const Key& key) override {
        TTT_TRY(Statement s,
                prepare(db_.get(),
                        "SELECT recipe, speedup, evidence FROM winner WHERE kernel=? AND site=? "
                        "AND guard=? AND gpu=? AND driver=? AND compiler=?"));
        bind_key(s.get(), key);
        const int rc = sqlite3_step(s.get());
        if (rc == SQLITE_DONE) return std::optional<Winner>();
        if (rc != SQLITE_ROW) return sql_error(db_.get(), "reading a winner");
        return std::optional<Winner>(
            Winner{column(s.get(), 0), sqlite3_column_double(s.get(), 1), column(s.get(), 2)});
    }

    Status remove(const Key& key) override {
        TTT_TRY(Statement s,
                prepare(db_.get(),
                        "DELETE FROM winner WHERE kernel=? AND site=? AND guard=? AND gpu=? "
                        "AND driver=? AND compiler=?"));
        bind_key(s.get(), key);
        if (sqlite3_step(s.get()) != SQLITE_DONE) return sql_error(db_.get(), "removing a winner");
        return ok_status();
    }

  private:
    Database db_;
};

}  // namespace

Result<std::unique_ptr<Store>> Store::open(const std::string& path) {
    if (path != ":memory:") {
        std::error_code ec;
        const auto parent = std::filesystem::path(path).parent_path();
        if (!parent.empty()) std::filesystem::create_directories(parent, ec);
        if (ec)
            return make_error(Code::kIo,
                              "store: cannot create " + parent.string() + ": " + ec.message());
    }
    sqlite3* raw = nullptr;
    const int rc =
        sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
    Database db(raw);  // also to be closed after a failure
    if (rc != SQLITE_OK) return sql_error(raw, "opening the file").with(path);
    sqlite3_busy_timeout(raw, kBusyMilliseconds);
    auto schema = prepare_schema(raw);
    if (!schema.ok()) return std::move(schema).error().with(path);
    return std::unique_ptr<Store>(std::make_unique<SqliteStore>(std::move(db)));
}

}  // namespace ttt::store
