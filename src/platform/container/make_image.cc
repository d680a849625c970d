#include "platform/container/make_image.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/faults.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/machine/machine.h"
#include "base/process/child_process.h"
#include "base/process/waiting.h"
#include "base/status.h"
#include "platform/container/base_images.h"
#include "platform/container/kept_images.h"
#include "platform/container/own_package.h"
#include "platform/container/packages.h"
#include "platform/container/podman.h"
#include "platform/container/registries.h"
#include "spec/types/registry_secret.h"

namespace tutti::container {
namespace {

namespace fs = std::filesystem;

// "MODE PATH HASH" of one file of a build's context.
absl::StatusOr<std::string> LineOf(const fs::path& file, const fs::path& root) {
  struct stat info {};
  if (::lstat(file.c_str(), &info) != 0) return base::ErrnoStatus(file.string());
  std::error_code error;
  std::string content;
  if (S_ISLNK(info.st_mode)) {
    content = fs::read_symlink(file, error).string();
    if (error) return base::ErrnoStatus(absl::StrCat("read link ", file.string()), error.value());
  } else if (S_ISREG(info.st_mode)) {
    TUTTI_ASSIGN_OR_RETURN(const auto digest, base::Sha256OfFile(file));
    content = base::Hex(digest);
  }
  return absl::StrCat(info.st_mode, " ", file.lexically_relative(root).string(), " ", content,
                      "\n");
}

constexpr uint64_t kLargestFile = 1 << 20;  // of a Dockerfile

class Maker {
 public:
  Maker(const spec::Image& image, const fs::path& folder, std::string name, const Logins& logins,
        const std::atomic<bool>& cancelled)
      : image_(image),
        logins_(logins),
        folder_(folder),
        name_(std::move(name)),
        key_(KeyOfImage(FullReference(name_))),
        // A folder that nodes share has a lock for each node's own storage.
        stem_(folder / absl::StrCat("image-", key_, ".", base::HostName())),
        cancelled_(cancelled) {}

  absl::StatusOr<MadeImage> Make() {
    const bool refresh = image_.context.empty() && MayChange(name_);
    if (!refresh) {
      const auto found = Take();
      if (!absl::IsNotFound(found.status())) return Made(found);
    }
    TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock,
                           base::LockFile(ImageLock(folder_, key_), cancelled_));
    is_recorded_ = TakeImage(folder_, key_);
    auto here = Find(name_);  // another may have made it
    if (!here.ok() && !absl::IsNotFound(here.status())) return here.status();
    if (here.ok() && !refresh) return Made(here);
    if (!image_.context.empty()) return Build();
    return Pull(here.ok() ? *here : "");
  }

 private:
  static absl::StatusOr<MadeImage> Made(const absl::StatusOr<std::string>& id) {
    if (!id.ok()) return id.status();
    return MadeImage{*id, ""};
  }

  // Finds it without waiting for who makes it, and marks it as used, which keeps who removes unused
  // ones, by the same lock, from taking it away. NotFound also while another makes or removes it.
  absl::StatusOr<std::string> Take() {
    const auto lock = base::Open(ImageLock(folder_, key_), O_RDWR | O_CREAT);
    if (lock.ok() && ::flock(lock->get(), LOCK_SH | LOCK_NB) != 0) {
      return absl::NotFoundError(name_);
    }
    const bool is_recorded = TakeImage(folder_, key_);
    auto id = Find(name_);
    // It is an earlier version's, or a kill came between the build and its record.
    if (id.ok() && !is_recorded && !image_.context.empty()) Record(name_, *id);
    return id;
  }

  // Notes that the image is tutti's to remove. Without a note it stays for ever.
  void Record(const std::string& name, const std::string& id) {
    KeptImage image{.key = KeyOfImage(name), .name = name, .id = id};
    image.bytes = SizeOfImage(id, cancelled_);
    RecordImage(folder_, image).IgnoreError();
  }

  // The image that had the name before is left without one.
  void RecordPulled(const std::string& id, const std::string& before) {
    const bool is_users = !before.empty() && !is_recorded_;
    if (is_users) return;
    if (!before.empty() && before != id) Record(before, before);
    Record(FullReference(name_), id);
  }

  // Several may ask at once; the log that stays is that of who ended last.
  absl::StatusOr<std::string> Podman(const std::vector<std::string>& arguments,
                                     const std::map<std::string, std::string>& variables = {}) {
    const fs::path own = absl::StrCat(stem_.string(), ".", ::getpid(), ".log");
    auto result = RunPodman(arguments, own, cancelled_, variables);
    std::error_code error;
    fs::rename(own, absl::StrCat(stem_.string(), ".log"), error);
    return result;
  }

  // NotFound if this node does not have it.
  absl::StatusOr<std::string> Find(const std::string& name) {
    return LookUpImage(name, cancelled_);
  }

  absl::StatusOr<MadeImage> Pull(const std::string& here) {
    const std::string full = FullReference(name_);
    const auto pulled = PullOnce(full);
    if (absl::IsCancelled(pulled.status())) return pulled.status();
    if (pulled.ok()) {
      auto id = Find(full);
      if (id.ok()) RecordPulled(*id, here);
      return Made(id);
    }
    std::string why(pulled.status().message());
    if (const std::string host = full.substr(0, full.find('/')); logins_.contains(host)) {
      absl::StrAppend(&why, " (with the login of secret \"", spec::SecretOfRegistry(host), "\")");
    }
    if (!here.empty()) {
      return MadeImage{here, absl::StrCat("image ", name_, " is as this node had it (", why, ")")};
    }
    return absl::FailedPreconditionError(
        absl::StrCat(image_.location, ": image ", name_, " cannot be pulled: ", why));
  }

  absl::StatusOr<std::string> PullOnce(const std::string& full) {
    TUTTI_ASSIGN_OR_RETURN(const LoginFile file,
                           LoginFile::Make(logins_, base::CurrentEnvironment()));
    return Podman({"pull", "--quiet", full}, file.variables());
  }

  absl::StatusOr<MadeImage> Build() {
    std::vector<std::string> arguments = {
        "build", "--network=host", absl::StrCat("--tag=", name_),
        absl::StrCat("--file=", (fs::path(image_.context) / image_.dockerfile).string())};
    for (std::string& option : LimitOptions()) arguments.push_back(std::move(option));
    arguments.push_back(image_.context);
    const base::TemporaryDirectory scratch("tutti-build");
    TUTTI_ASSIGN_OR_RETURN(const fs::path registries,
                           WriteRegistries(base::CurrentEnvironment(), scratch.path()));
    const std::vector<std::string> to_pull = BasesToPull();
    const auto built = BuildOnce(arguments, registries);
    for (const std::string& base : to_pull) {
      if (const auto id = LookUpImage(base, cancelled_); id.ok()) Record(base, *id);
    }
    if (built.ok()) {
      const auto id = Find(name_);
      if (id.ok()) Record(name_, *id);
      return Made(id);
    }
    if (absl::IsCancelled(built.status())) return built.status();
    const std::string why =
        image_.needed_by.empty()
            ? ""
            : absl::StrCat("; it is built for ", image_.needed_by,
                           ", unless site.yml says which packages stand for its image");
    return absl::FailedPreconditionError(
        absl::StrCat(image_.location, ": ", image_.dockerfile,
                     " cannot be built: ", built.status().message(), why));
  }

  absl::StatusOr<std::string> BuildOnce(const std::vector<std::string>& arguments,
                                        const fs::path& registries) {
    TUTTI_ASSIGN_OR_RETURN(const LoginFile file,
                           LoginFile::Make(logins_, base::CurrentEnvironment()));
    std::map<std::string, std::string> variables = file.variables();
    variables["CONTAINERS_REGISTRIES_CONF"] = registries.string();
    return Podman(arguments, variables);
  }

  // Returns the images that the build will pull, as far as its Dockerfile says.
  std::vector<std::string> BasesToPull() {
    const auto text = base::ReadFile(fs::path(image_.context) / image_.dockerfile, kLargestFile);
    std::vector<std::string> bases;
    for (const BaseImage& base : BaseImagesOf(text.value_or(""))) {
      std::string full = FullReference(base.reference);
      const bool is_here = !absl::IsNotFound(LookUpImage(full, cancelled_).status());
      if (base.reference != "scratch" && !is_here) bases.push_back(std::move(full));
    }
    return bases;
  }

  const spec::Image& image_;
  const Logins& logins_;
  const fs::path folder_;
  const std::string name_, key_;
  const fs::path stem_;
  bool is_recorded_ = false;  // tutti has pulled or built what has the name
  const std::atomic<bool>& cancelled_;
};

}  // namespace

absl::StatusOr<std::string> NameOfBuild(const spec::Image& image) {
  const fs::path root(image.context);
  std::vector<std::string> lines = {absl::StrCat("dockerfile ", image.dockerfile, "\n")};
  std::error_code error;
  for (fs::recursive_directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename() == ".git") {
      entry.disable_recursion_pending();
      continue;
    }
    TUTTI_ASSIGN_OR_RETURN(lines.emplace_back(), LineOf(entry->path(), root));
  }
  if (error) return base::ErrnoStatus(root.string(), error.value());
  std::sort(lines.begin() + 1, lines.end());
  base::Sha256 hash;
  for (const std::string& line : lines) hash.Update(line);
  return absl::StrCat("localhost/tutti-build:", base::Hex(hash.Finish()).substr(0, 24));
}

std::string FullReference(const std::string& reference) {
  const size_t slash = reference.find('/');
  if (slash == std::string::npos) return absl::StrCat("docker.io/library/", reference);
  const absl::string_view first(reference.data(), slash);
  const bool is_host =
      first == "localhost" || absl::StrContains(first, '.') || absl::StrContains(first, ':');
  return is_host ? reference : absl::StrCat("docker.io/", reference);
}

bool MayChange(const std::string& reference) {
  if (absl::StrContains(reference, '@') || absl::StartsWith(reference, "localhost/")) return false;
  const size_t tag = reference.find(':', reference.rfind('/') + 1);
  return tag == std::string::npos || reference.substr(tag) == ":latest";
}

absl::StatusOr<MadeImage> MakeImage(const spec::Environment& environment, const fs::path& folder,
                                    const std::atomic<bool>& cancelled, const Logins& logins) {
  const spec::Image& image = environment.image;
  TUTTI_RETURN_IF_ERROR(FindPodman().status());
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
  std::string name = image.reference;
  if (!image.context.empty()) {
    TUTTI_ASSIGN_OR_RETURN(name, NameOfBuild(image));
  }
  auto made = Maker(image, folder, name, logins, cancelled).Make();
  if (!made.ok() || environment.packages.empty()) return made;
  TUTTI_ASSIGN_OR_RETURN(const spec::Environment with_own, WithOwnPackage(environment));
  TUTTI_ASSIGN_OR_RETURN(made->id,
                         WithPackages(with_own, FullReference(name), made->id, folder, cancelled));
  return made;
}

namespace {

// Checks the job's own environment: an image needs podman here. The steps of a pipeline are not
// looked at.
absl::Status CheckImage(const spec::JobSpec& job) {
  const spec::Image& image = job.environment.image;
  if (image.empty() || job.compute != "local") return absl::OkStatus();
  const absl::Status found = FindPodman().status();
  if (found.ok()) return absl::OkStatus();
  const std::string what = !image.needed_by.empty() ? image.needed_by
                           : image.context.empty()
                               ? absl::StrCat(image.location, ": image ", image.reference)
                               : absl::StrCat(image.location, ": the image of ", image.dockerfile);
  return absl::InvalidArgumentError(absl::StrCat(what, " cannot be run: ", found.message()));
}

}  // namespace

absl::Status CheckCanRun(const spec::JobSpec& job) {
  base::Faults faults;
  for (const spec::Step& step : job.steps) faults.Add(CheckCanRun(step.job));
  faults.Add(CheckImage(job));
  return faults.status();
}

}  // namespace tutti::container
