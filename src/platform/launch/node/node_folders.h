// NodeFolders names the files and folders in an allocation's folder on the node
// (docs/formats/launch-plan.md).
#pragma once

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tutti::launch {

struct NodeFolders {
  explicit NodeFolders(std::filesystem::path directory) : root(std::move(directory)) {}
  std::filesystem::path root;

  std::filesystem::path plan() const { return root / "plan.json"; }
  std::filesystem::path log() const { return root / "launcher.log"; }
  std::filesystem::path started() const { return root / "started"; }
  std::filesystem::path marker() const { return root / "marker"; }  // becomes `started`
  std::filesystem::path lock() const { return root / "lock"; }
  std::filesystem::path stop() const { return root / "stop"; }
  std::filesystem::path stop_requested() const { return root / "told"; }
  std::filesystem::path died() const { return root / "died"; }  // exit_reason.h
  std::filesystem::path failed() const { return root / "failed"; }
  std::filesystem::path done() const { return root / "done"; }
  std::filesystem::path spool() const { return root / "spool"; }
  std::filesystem::path events() const { return spool() / "events.jsonl"; }
  std::filesystem::path acknowledged() const { return spool() / "acknowledged.json"; }
  std::filesystem::path written() const { return spool() / "written.json"; }
  std::filesystem::path results() const { return spool() / "results"; }
  std::filesystem::path stream(int rank, absl::string_view name) const {
    return spool() / absl::StrCat("rank-", rank, ".", name);
  }
  std::filesystem::path work() const { return root / "work"; }
  std::filesystem::path work_outputs() const { return work() / "outputs"; }
  std::filesystem::path work_logs() const { return work() / "logs"; }
  std::filesystem::path python() const { return root / "python"; }
  std::filesystem::path inputs() const { return root / "inputs"; }
  std::filesystem::path outputs() const { return root / "outputs"; }
  std::filesystem::path stored() const { return root / "stored"; }         // output_store.h
  std::filesystem::path resumed() const { return root / "resumed.json"; }  // resumed_files.h
  std::filesystem::path scratch() const { return root / "scratch"; }
  // Returns where a collector puts the code: beside the folders of all nodes.
  std::filesystem::path code() const { return root.parent_path() / "code.tar.zst"; }
  std::filesystem::path service_certificate() const { return root / "service.pem"; }
  std::filesystem::path packages() const { return root / "environment.txt"; }
  std::filesystem::path host_file() const { return root / "hostfile"; }
};

}  // namespace tutti::launch
