#include <unistd.h>

#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/storage/storage_report.h"
#include "platform/client/storage/storage_session.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/columns.h"
#include "platform/client/text/table.h"

namespace tutti::client {
namespace {

using storage::StoredObject;

constexpr size_t kCatBlock = 1 << 20;

bool IsFolder(const StoredObject& object) { return absl::EndsWith(object.path, "/"); }

std::string TimeOfChange(double modified) {
  if (modified <= 0) return "";
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::UnixEpoch() + absl::Seconds(modified),
                          absl::UTCTimeZone());
}

std::string JsonOf(const Listing& listing) {
  nlohmann::ordered_json objects = nlohmann::ordered_json::array();
  for (const StoredObject& object : listing.objects) {
    nlohmann::ordered_json entry = {{"path", object.path}};
    entry["bytes"] =
        IsFolder(object) ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(object.bytes);
    const std::string time = TimeOfChange(object.modified);
    entry["modified"] =
        time.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(time);
    objects.push_back(std::move(entry));
  }
  return nlohmann::ordered_json({{"objects", std::move(objects)}})
      .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// Sum is what one of the folders has that `du` lists.
struct Sum {
  int64_t objects = 0, bytes = 0;
  void Add(const StoredObject& object) {
    ++objects;
    bytes += object.bytes;
  }
};

std::string Counted(const Sum& sum) {
  return absl::StrCat(WithCommas(sum.objects), sum.objects == 1 ? " object, " : " objects, ",
                      Bytes(static_cast<uint64_t>(sum.bytes)));
}

absl::Status CatFile(const std::filesystem::path& path, std::ostream& out) {
  std::ifstream in(path, std::ios::binary);
  std::vector<char> block(kCatBlock);
  while (in) {
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    out.write(block.data(), in.gcount());
  }
  out.flush();
  return out ? absl::OkStatus() : absl::DataLossError("standard output takes no more bytes");
}

absl::Status NotAFolder(const Listing& listing, const StorageAddress& address) {
  const bool is_pattern = !address.is_job() && address.place.is_pattern;
  if (listing.is_file || is_pattern) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(address.text, " is a folder: name an object, or a pattern"));
}

// Names what a folder has that is no object.
void TellLeftOut(Context& context, const Listing& listing) {
  for (const StoredObject& one : listing.left_out) {
    context.err << "left out: " << Printable(JoinedPath(listing.base, one.path)) << ": "
                << Printable(one.left_out) << "\n";
  }
}

}  // namespace

absl::StatusOr<ExitCode> StorageList(Context& context, const StorageOptions& options) {
  StorageSession session(context.connect, context.home);
  TUTTI_ASSIGN_OR_RETURN(const auto side, session.Open(options.addresses.front()));
  TUTTI_ASSIGN_OR_RETURN(const Listing listing, side->List(options.recursive));
  TellLeftOut(context, listing);
  if (options.format != Format::kTable) {
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, JsonOf(listing), options.format));
    return ExitCode::kOk;
  }
  Table table({{"SIZE", Table::Align::kRight}, {"CHANGED"}, {"NAME"}});
  for (const StoredObject& object : listing.objects) {
    table.Add({{IsFolder(object) ? "" : Bytes(static_cast<uint64_t>(object.bytes))},
               {TimeOfChange(object.modified)},
               {object.path}});
  }
  context.out << table.Render(context.out_screen.width, context.out_screen.colour);
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> StorageUsage(Context& context, const StorageOptions& options) {
  StorageSession session(context.connect, context.home);
  TUTTI_ASSIGN_OR_RETURN(const auto side, session.Open(options.addresses.front()));
  TUTTI_ASSIGN_OR_RETURN(const Listing listing, side->List(/*recursive=*/true));
  TellLeftOut(context, listing);
  std::map<std::string, Sum> parts;
  Sum all;
  for (const StoredObject& object : listing.objects) {
    const size_t slash = object.path.find('/');
    parts[object.path.substr(0, slash == std::string::npos ? slash : slash + 1)].Add(object);
    all.Add(object);
  }
  if (options.format != Format::kTable) {
    nlohmann::ordered_json entries = nlohmann::ordered_json::array();
    for (const auto& [path, sum] : parts) {
      entries.push_back({{"path", path}, {"objects", sum.objects}, {"bytes", sum.bytes}});
    }
    const nlohmann::ordered_json document = {
        {"entries", std::move(entries)}, {"objects", all.objects}, {"bytes", all.bytes}};
    TUTTI_RETURN_IF_ERROR(WriteStructured(
        context.out,
        document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace),
        options.format));
    return ExitCode::kOk;
  }
  Table table({{"SIZE", Table::Align::kRight}, {"OBJECTS", Table::Align::kRight}, {"NAME"}});
  for (const auto& [path, sum] : parts) {
    table.Add({{Bytes(static_cast<uint64_t>(sum.bytes))}, {WithCommas(sum.objects)}, {path}});
  }
  context.out << table.Render(context.out_screen.width, context.out_screen.colour) << Counted(all)
              << "\n";
  return ExitCode::kOk;
}

// Each is written once it has come as a whole and has been compared with the store's checksum.
absl::StatusOr<ExitCode> StorageCat(Context& context, const StorageOptions& options) {
  StorageSession session(context.connect, context.home);
  for (const std::string& address : options.addresses) {
    TUTTI_ASSIGN_OR_RETURN(const auto side, session.Open(address));
    TUTTI_ASSIGN_OR_RETURN(const Listing listing, side->List(/*recursive=*/false));
    TUTTI_RETURN_IF_ERROR(NotAFolder(listing, side->address()));
    for (const StoredObject& object : listing.objects) {
      if (IsFolder(object)) continue;
      const base::TemporaryDirectory folder("tutti-cat");
      std::filesystem::path file = std::filesystem::path(listing.base) / object.path;
      if (!side->address().is_local()) {
        TUTTI_RETURN_IF_ERROR(side->Fetch(listing.base, {object.path}, folder.path(), {}));
        file = folder.path() / object.path;
      }
      TUTTI_RETURN_IF_ERROR(CatFile(file, context.out));
    }
  }
  return ExitCode::kOk;
}

absl::StatusOr<bool> MayRemove(Context& context, bool yes, const std::string& question) {
  if (yes) return true;
  if (::isatty(STDIN_FILENO) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(question, " There is no terminal to ask at: say --yes"));
  }
  context.err << question << " [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return absl::AsciiStrToLower(absl::StripAsciiWhitespace(answer)) == "y";
}

absl::StatusOr<ExitCode> StorageRemove(Context& context, const StorageOptions& options) {
  StorageSession session(context.connect, context.home);
  const bool is_table = options.format == Format::kTable;
  RemovalReport report{.dry_run = options.dry_run};
  for (const std::string& address : options.addresses) {
    TUTTI_ASSIGN_OR_RETURN(const auto side, session.Open(address));
    const StorageAddress& from = side->address();
    if (from.is_job()) return side->RemoveAll();
    TUTTI_ASSIGN_OR_RETURN(const Listing listing, side->List(/*recursive=*/true));
    if (!listing.is_file && !from.place.is_pattern && !options.recursive) {
      return absl::InvalidArgumentError(
          absl::StrCat(from.text, " is a folder: say -r to remove all that is in it"));
    }
    Sum sum;
    for (const StoredObject& object : listing.objects) {
      sum.Add(object);
      if (options.dry_run && is_table) {
        context.out << "would remove " << Printable(object.path) << "\n";
      }
    }
    if (!is_table) report.Add(from, listing);
    const std::string what =
        listing.is_file ? from.text : absl::StrCat(Counted(sum), " of ", from.text);
    if (options.dry_run) {
      context.err << "would remove " << what << "\n";
      continue;
    }
    if (!listing.is_file) {
      TUTTI_ASSIGN_OR_RETURN(const bool may,
                             MayRemove(context, options.yes, absl::StrCat("Remove ", what, "?")));
      if (!may) return absl::CancelledError("nothing was removed");
    }
    TUTTI_RETURN_IF_ERROR(side->RemoveAll());
    context.err << "removed " << what << "\n";
  }
  if (!is_table) {
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, report.Json(), options.format));
  }
  return ExitCode::kOk;
}

}  // namespace tutti::client
