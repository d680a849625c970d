#include "base/process/read_only_view.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "base/test_patience.h"

namespace tutti::base {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr uid_t kUser = 64321;  // nobody here

// Tries all that would change a folder, and prints what went.
constexpr char kVandal[] =
    "exec 2>/dev/null; cd \"$1\" || echo no folder\n"
    "(echo x >a) && echo wrote; (echo x >new) && echo made; (: >>sub/b) && echo opened\n"
    "chmod 777 a && echo changed a mode; mv a b && echo moved; rm -f a && echo removed\n"
    "touch -d @0 a && echo changed a time; ln a hard && echo linked; mkdir d && echo made d\n"
    "rmdir sub || rm -r sub; [ -e sub/b ] || echo removed sub; cat a sub/b; exit 0";

class ReadOnlyViewTest : public ::testing::Test {
 protected:
  ReadOnlyViewTest() {
    EXPECT_TRUE(MakeDirectories(data() / "sub").ok());
    EXPECT_TRUE(WriteFileAtomic(data() / "a", "one\n").ok());
    EXPECT_TRUE(WriteFileAtomic(data() / "sub/b", "two\n").ok());
    if (::geteuid() != 0) return;
    for (const char* name : {"", "data", "data/sub", "data/a", "data/sub/b"}) {
      EXPECT_EQ(::chown((folder_.path() / name).c_str(), kUser, kUser), 0);
    }
  }

  fs::path data() const { return folder_.path() / "data"; }

  // Returns what a shell prints that runs in the view, in that folder.
  std::string Output(const ReadOnlyView& view, const std::string& script) const {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    UniqueFd out(ends[0]), in(ends[1]);
    ChildOptions options;
    options.arguments = {"sh", "-c", script, "sh", data().string()};
    options.environment = {{"PATH", "/usr/sbin:/usr/bin:/sbin:/bin"}};
    options.directory = folder_.path();
    options.stdout_fd = in.get();
    options.before_exec = [&] { return view.Enter(options.directory.c_str()); };
    auto child = ChildProcess::Start(options);
    in.reset();
    if (!child.ok()) return std::string(child.status().message());
    std::string text;
    char part[4096];
    for (ssize_t n; (n = ::read(out.get(), part, sizeof part)) > 0;)
      text.append(part, static_cast<size_t>(n));
    EXPECT_TRUE(child->Wait(Deadline::After(Patient(absl::Seconds(20)))).ok());
    return text;
  }

  // Whether that holds in a process of another user, or in namespaces of its own.
  static bool HoldsInChild(const std::function<bool()>& begin, const std::function<bool()>& holds) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(begin() && holds() ? 0 : 1);
    int status = 0;
    return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  // As a process that this user has started.
  static bool BecomeUser() {
    return ::geteuid() != 0 ||
           (::setresgid(kUser, kUser, kUser) == 0 && ::setresuid(kUser, kUser, kUser) == 0 &&
            ::prctl(PR_SET_DUMPABLE, 1) == 0);
  }

  // Returns whether this user can make a view on this machine, which no test asks more of.
  static bool MayMake() {
    const TemporaryDirectory folder;
    return ReadOnlyView::Make({{folder.path()}, {}}).ok();
  }
  static bool UserMayMake() { return HoldsInChild(BecomeUser, MayMake); }

  const TemporaryDirectory folder_;
};

#define SKIP_UNLESS(may) \
  if (!(may)) GTEST_SKIP() << "this machine lets this user make no namespace"

TEST_F(ReadOnlyViewTest, AProcessInItChangesNothingAndAllElseGoesOn) {
  SKIP_UNLESS(MayMake());
  const auto view = ReadOnlyView::Make({{data()}, {}});
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(Output(*view, kVandal), "one\ntwo\n");
  EXPECT_THAT(Output(*view, "(echo x >data/a) 2>&1"), HasSubstr("Read-only file system"));
  EXPECT_EQ(Output(*view, "echo x >beside && cat beside; pwd"),
            absl::StrCat("x\n", folder_.path().native(), "\n"));
  EXPECT_EQ(*ReadFile(data() / "a"), "one\n");
  EXPECT_TRUE(WriteFileAtomic(data() / "a", "three\n").ok()) << "this process is not in it";
  EXPECT_EQ(Output(*view, "cat data/a"), "three\n");
}

TEST_F(ReadOnlyViewTest, AnotherUserHasItTooAndStaysWhoItIs) {
  SKIP_UNLESS(UserMayMake());
  const auto holds = [&] {
    const auto view = ReadOnlyView::Make({{data()}, {}});
    if (!view.ok()) return false;
    EXPECT_EQ(Output(*view, kVandal), "one\ntwo\n");
    const std::string who = Output(*view, "id -u; id -g; stat -c %u data");
    EXPECT_EQ(who, Output(ReadOnlyView(std::vector<UniqueFd>()), "id -u; id -g; stat -c %u data"));
    EXPECT_EQ(Output(*view, "umount data 2>/dev/null || echo no; grep CapEff /proc/self/status"),
              "no\nCapEff:\t0000000000000000\n");
    EXPECT_EQ(Output(*view, "echo x >beside && cat beside"), "x\n");
    return !HasFailure();
  };
  EXPECT_TRUE(HoldsInChild(BecomeUser, holds));
}

// Their parent sees and ends them as any other.
TEST_F(ReadOnlyViewTest, ItsProcessesAreReadAndDieWithTheirParent) {
  SKIP_UNLESS(UserMayMake());
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd out(ends[0]), in(ends[1]);
  const auto holds = [&] {
    const auto view = ReadOnlyView::Make({{data()}, {}});
    ChildOptions options;
    options.arguments = {"sh", "-c", "echo $$; exec sleep 1000"};
    options.environment = {{"PATH", "/usr/bin:/bin"}, {"MARK", "seen"}};
    options.stdout_fd = in.get();
    options.die_with_parent = true;
    options.before_exec = [&] { return view->Enter("/"); };
    const auto child = ChildProcess::Start(options);
    if (!child.ok()) return false;
    const std::string file = absl::StrCat("/proc/", child->pid(), "/environ");
    const Deadline deadline = Deadline::After(Patient(absl::Seconds(20)));
    auto environment = ReadFile(file);
    while (environment.ok() && environment->empty() && !deadline.Expired()) {
      environment = ReadFile(file);  // it is in the midst of exec
    }
    EXPECT_THAT(environment.value_or(""), HasSubstr("MARK=seen")) << environment.status();
    return !HasFailure();
  };
  EXPECT_TRUE(HoldsInChild(BecomeUser, holds));
  in.reset();
  std::string printed;
  pollfd waiting = {out.get(), POLLIN, 0};
  const Deadline deadline = Deadline::After(Patient(absl::Seconds(20)));
  ssize_t n = 1;
  while (n > 0 && ::poll(&waiting, 1, deadline.RemainingMillis()) > 0) {
    char part[64];
    n = ::read(out.get(), part, sizeof part);  // 0 once it has ended
    if (n > 0) printed.append(part, static_cast<size_t>(n));
  }
  EXPECT_EQ(n, 0) << "it goes on without its parent";
  if (n != 0) ::kill(std::atoi(printed.c_str()), SIGKILL);
}

TEST_F(ReadOnlyViewTest, WhatIsNamedWritableStaysSoAndMayHoldWhatIsNot) {
  SKIP_UNLESS(MayMake());
  ASSERT_TRUE(MakeDirectories(data() / "job/input").ok());
  const auto view =
      ReadOnlyView::Make({{data(), data() / "job/input"}, {data() / "job", folder_.path()}});
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(Output(*view,
                   "exec 2>/dev/null; echo x >data/a || echo no; echo x >data/job/a && echo yes; "
                   "echo x >data/job/input/a || echo no; rm -r data/job || echo kept"),
            "no\nyes\nno\nkept\n");
}

TEST_F(ReadOnlyViewTest, WhatIsMountedBelowIsReadOnlyToo) {
  SKIP_UNLESS(::geteuid() == 0 && MayMake());
  const auto mount_there = [&] {
    return ::unshare(CLONE_NEWNS) == 0 &&
           ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           ::mount("none", (data() / "sub").c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "") == 0;
  };
  const auto holds = [&] {
    const auto view = ReadOnlyView::Make({{data()}, {}});
    if (!view.ok()) return false;
    EXPECT_EQ(Output(*view, "(: >data/sub/x) 2>/dev/null || echo no; stat -f -c %T data/sub"),
              "no\ntmpfs\n");
    EXPECT_TRUE(WriteFileAtomic(data() / "sub/x", "").ok());
    return !HasFailure();
  };
  EXPECT_TRUE(HoldsInChild(mount_there, holds));
}

TEST_F(ReadOnlyViewTest, AFileAloneCanBeReadOnlyAndLinksAreFollowed) {
  SKIP_UNLESS(MayMake());
  fs::create_symlink(data() / "a", folder_.path() / "link");
  const auto view = ReadOnlyView::Make({{folder_.path() / "link"}, {}});
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(
      Output(*view, "exec 2>/dev/null; echo x >data/a || echo no; echo x >data/new && echo yes"),
      "no\nyes\n");
}

TEST_F(ReadOnlyViewTest, SaysWhatIsNotThereOrCannotBe) {
  const auto missing = ReadOnlyView::Make({{data() / "none"}, {}});
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(missing.status().message(), HasSubstr((data() / "none").native()));
  EXPECT_EQ(ReadOnlyView::Make({{"/"}, {}}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ReadOnlyViewTest, ADescriptorOfItIsEnough) {
  SKIP_UNLESS(MayMake());
  std::vector<UniqueFd> handed;
  {
    const auto view = ReadOnlyView::Make({{data()}, {}});
    ASSERT_TRUE(view.ok()) << view.status();
    for (const int fd : view->descriptors()) handed.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  }
  EXPECT_EQ(Output(ReadOnlyView(std::move(handed)), kVandal), "one\ntwo\n");
}

}  // namespace
}  // namespace tutti::base
