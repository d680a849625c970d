// Makes the documents that `tutti storage cp`, `mv`, `sync` and `rm` print for programs
// (docs/data/storage-command.md): what was done, or with --dry-run what would be. Each has all
// files, however many, by addresses that the command takes (AddressAt). What is behind a link to a
// folder of this machine is not removed, and not said to be; the links are looked for when files
// are added. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "platform/client/storage/copy_plan.h"

namespace tutti::client {

// CopyReport is what cp, mv or sync has done.
struct CopyReport {
  struct File {
    std::string from, to;
    int64_t bytes = 0;
  };
  std::string command;
  bool dry_run = false;
  std::string target;
  std::vector<std::string> sources;
  std::vector<File> files;  // copied
  struct NotCopied {
    std::string from, why;
  };
  int64_t left_out = 0;               // files that were at the target already
  std::vector<NotCopied> not_copied;  // what cannot be
  std::vector<std::string> removed;   // of mv at the source, of sync at the target

  // Adds a source, of whose plan `copied` was copied, and the rest left out.
  void Add(const StorageAddress& from, const CopyPlan& plan, const std::vector<CopyItem>& copied,
           const StorageAddress& to);
  // Adds files of the folder `base` that are removed.
  void AddRemoved(const StorageAddress& at, const std::string& base,
                  const std::vector<std::string>& paths);
  std::string Json() const;
};

// RemovalReport is what rm has done.
struct RemovalReport {
  bool dry_run = false;
  std::vector<std::string> sources;
  std::vector<std::string> removed;
  int64_t bytes = 0;

  // Adds an address, and what is there; before it is removed.
  void Add(const StorageAddress& from, const Listing& listing);
  std::string Json() const;
};

}  // namespace tutti::client
