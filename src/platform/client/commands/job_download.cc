#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/download.h"
#include "platform/client/job_name.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/columns.h"
#include "platform/client/text/live_text.h"

namespace tutti::client {
namespace {

uint64_t Total(const std::vector<FileView>& files) {
  uint64_t bytes = 0;
  for (const FileView& file : files) bytes += file.bytes;
  return bytes;
}

absl::Status Fetch(Context& context, Service& service, const std::string& id,
                   const std::vector<FileView>& files, const std::string& directory) {
  LiveText text(context.err, context.err_screen);
  const std::string all = Bytes(Total(files));
  const int width = text.screen().width;
  uint64_t before = 0;  // of the files that are done
  uint64_t shown = 0;   // when the line was last drawn, so that it is not drawn for every piece
  return DownloadFiles(service, id, files, directory, [&](const FileView& file, uint64_t bytes) {
    const uint64_t now = before + bytes;
    if (bytes == file.bytes) before += bytes;
    if (now - shown < (1 << 20)) return;
    shown = now;
    text.SetStatus(
        Shorten(absl::StrCat(Bytes(now), " of ", all, "  ", Printable(file.path)), width - 1));
    text.Flush();
  });
}

}  // namespace

absl::StatusOr<ExitCode> JobDownload(Context& context, const JobDownloadOptions& options) {
  Service service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string id, ResolveJob(service, options.job));
  TUTTI_ASSIGN_OR_RETURN(const std::string text, service.Files(id));
  TUTTI_ASSIGN_OR_RETURN(const std::vector<FileView> files, ParseFiles(text));
  const std::string directory = options.directory.empty() ? "./" + id : options.directory;
  TUTTI_RETURN_IF_ERROR(Fetch(context, service, id, files, directory));
  if (options.format != Format::kTable) {
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, text, options.format));
    return ExitCode::kOk;
  }
  for (const FileView& file : files) {
    context.out << PadLeft(Bytes(file.bytes), 8) << "  " << directory << "/" << Printable(file.path)
                << "\n";
  }
  context.err << files.size() << (files.size() == 1 ? " file, " : " files, ") << Bytes(Total(files))
              << " in " << directory << "\n";
  return ExitCode::kOk;
}

}  // namespace tutti::client
