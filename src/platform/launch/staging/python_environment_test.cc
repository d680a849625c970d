// Covers: job_python.cc.
#include "platform/launch/staging/python_environment.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "base/test_patience.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// Stands for uv in PATH: notes its calls, makes a bare virtual environment, and "installs" a module
// NAME.py and a program NAME for each requirement, under the constraints that it notes. No Python
// 3.7, and 3.8 only with a file `python3.8`; nothing is called "missing"; "pinned" has a version 1
// for that 3.8 alone, "xgboost-cpu" no version 1.5. "slow"
// waits until there is a file `go`; "chatty" fails after it has said more than a MiB. With a file
// `bare` its virtual environments have nothing in them.
constexpr char kUv[] = R"sh(#!/bin/bash
here=$(dirname "$0")
echo "$@" >>"$here/calls"
case $1 in
  python)
    [ "$2 $4" = "find 3.11" ] && { command -v python3; exit 0; }
    [ "$2 $4" = "find 3.8" ] && [ -e "$here/python3.8" ] && { echo "$here/python3.8"; exit 0; }
    echo "error: No download found for request: cpython-3.7" >&2; exit 2 ;;
  venv)
    [ ! -e "$here/bare" ] || { mkdir -p "$4/bin"; exit; }
    base=$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')
    version=$("$base" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    mkdir -p "$4/bin" "$4/lib/python$version/site-packages"
    [ "$3" != "$here/python3.8" ] || touch "$4/is-3.8"
    ln -s "$base" "$4/bin/python" && ln -s python "$4/bin/python3"
    printf 'home = %s\nversion_info = %s\n' "$(dirname "$base")" "$version" >"$4/pyvenv.cfg" ;;
  pip)
    if [ "$2" = compile ]; then
      [ ! -e "$here/torch-is-away" ] && exit 0
      echo "error: Failed to fetch: \`https://download.pytorch.org/whl/cpu/torch/\`" >&2
      echo "  Caused by: dns error" >&2; exit 2
    fi
    [ ! -e "$here/index-is-away" ] || {
      echo "error: Failed to fetch: \`https://me:pass@pypi.org/simple/alpha/\`"
      printf '  Caused by: tcp connect error\n  Caused by: Connection refused (os error 111)\n'; exit 2; }
    case "$*" in
      *--torch-backend*) [ ! -e "$here/torch-has-none" ] || { echo "no version of torch"; exit 1; } ;;
    esac
    place=$(dirname "$(dirname "$4")")
    [ "$7" != -c ] || cat "$8" >>"$here/constraints"
    [ "$7" != -c ] || ! grep -q '^xgboost-cpu==1.5$' "$8" || { echo "no version of xgboost-cpu==1.5"; exit 1; }
    while read -r line; do
      name=${line%%[=<>]*}
      case $line in
        missing*) printf '  × No solution found when resolving dependencies:\n  ╰─▶ Because %s was not found in the package registry and you require %s,\n      we can conclude nothing.\n' "$name" "$name"; exit 1 ;;
        pinned[=~]=1*) [ -e "$place/is-3.8" ] || { echo "no version of pinned==1"; exit 1; } ;;
        chatty) yes 'a line of a build' | head -c 1500000; printf '\nhttps://me:pass@h.org/x\nerror: chatty fails late\n'; exit 1 ;;
        slow) until [ -e "$here/go" ]; do sleep 0.01; done ;;
      esac
      case $line in mlflow*) mkdir "$(echo "$place"/lib/python3.*/site-packages)/$name-${line##*=}.dist-info" ;; esac
      echo "value = '$line'" >"$(echo "$place"/lib/python3.*/site-packages)/$name.py"
      printf '#!%s/bin/python\nimport sys, %s; print(%s.value, sys.argv[1:])\n' "$place" "$name" "$name" >"$place/bin/$name"
      chmod +x "$place/bin/$name"
    done <"$6" ;;
esac
)sh";

class PythonEnvironment : public ::testing::Test {
 protected:
  PythonEnvironment() : path_(std::getenv("PATH")) {
    EXPECT_TRUE(base::WriteFileAtomic(tools_.path() / "uv", kUv, 0755).ok());
    ::setenv("PATH", absl::StrCat(tools_.path().string(), ":", path_).c_str(), 1);
    ::setenv("PYENV_ROOT", (folder_.path() / "no-pyenv").c_str(), 1);
    ::setenv("UV_NO_INDEX", "1", 1);  // so that no index is asked when the pins were uploaded
  }
  ~PythonEnvironment() override {
    ::setenv("PATH", path_.c_str(), 1);
    ::unsetenv("PYENV_ROOT");
    ::unsetenv("UV_NO_INDEX");
  }

  static spec::Environment Of(const std::vector<std::string>& packages) {
    spec::Environment environment{.name = "e", .is_host = false};
    int line = 0;
    for (const std::string& package : packages) {
      environment.packages.push_back({package, absl::StrCat("conda.yml:", ++line)});
    }
    return environment;
  }
  absl::StatusOr<MadeEnvironment> Make(const spec::Environment& environment) {
    return MakeEnvironment(environment, folder_.path() / "environments", cancelled_,
                           node_has_gpus_);
  }
  std::string LogOf(const MadeEnvironment& made) {
    return base::ReadFile(made.folder.native() + ".log").value_or("");
  }
  int Calls(absl::string_view command) {
    int count = 0;
    const std::string calls = base::ReadFile(tools_.path() / "calls").value_or("");
    for (const absl::string_view line : absl::StrSplit(calls, '\n')) {
      count += absl::StartsWith(line, command) ? 1 : 0;
    }
    return count;
  }
  std::string OutputOf(const std::vector<std::string>& arguments) {
    const fs::path file = folder_.path() / "output";
    const auto log = base::Open(file, O_WRONLY | O_CREAT | O_TRUNC);
    base::ChildOptions options{.arguments = arguments, .environment = {{"PATH", path_}}};
    options.stdout_fd = options.stderr_fd = log->get();
    auto child = base::ChildProcess::Start(options);
    EXPECT_TRUE(child.ok()) << child.status();
    EXPECT_TRUE(child->Wait(base::Deadline::After(base::Patient(absl::Seconds(30)))).ok());
    return base::ReadFile(file).value_or("");
  }

  base::TemporaryDirectory folder_, tools_;
  std::atomic<bool> cancelled_ = false;
  bool node_has_gpus_ = false;
  const std::string path_;
};

TEST_F(PythonEnvironment, IsMadeOnceForEachContent) {
  const auto first = Make(Of({"alpha==1", "beta"}));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->note, "");
  EXPECT_EQ(Make(Of({"alpha==1", "beta"}))->folder, first->folder);
  EXPECT_EQ(Calls("venv"), 1);
  EXPECT_NE(Make(Of({"alpha==2", "beta"}))->folder, first->folder);
  EXPECT_EQ(Calls("venv"), 2);
}

TEST_F(PythonEnvironment, OneThatIsHalfMadeIsMadeAnew) {
  const auto first = Make(Of({"alpha"}));
  ASSERT_TRUE(first.ok()) << first.status();
  fs::remove(first->folder / "complete");
  ASSERT_TRUE(base::WriteFileAtomic(first->folder / "rest", "").ok());
  ASSERT_TRUE(Make(Of({"alpha"})).ok());
  EXPECT_FALSE(fs::exists(first->folder / "rest"));
  EXPECT_EQ(Calls("venv"), 2);
}

TEST_F(PythonEnvironment, TwoWhoNeedItAtOnceMakeItOnce) {
  absl::StatusOr<MadeEnvironment> first = absl::UnknownError(""), second = absl::UnknownError("");
  std::thread a([&] { first = Make(Of({"slow"})); });
  std::thread b([&] { second = Make(Of({"slow"})); });
  ASSERT_TRUE(base::WriteFileAtomic(tools_.path() / "go", "").ok());
  a.join();
  b.join();
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_EQ(first->folder, second->folder);
  EXPECT_EQ(Calls("venv"), 1);
}

TEST_F(PythonEnvironment, APackageThatCannotBeHadIsNamedWithItsLine) {
  EXPECT_EQ(Make(Of({"alpha", "missing_one==3"})).status().message(),
            "conda.yml:2: missing_one==3 cannot be had: No solution found when resolving "
            "dependencies: Because missing_one was not found in the package registry and you "
            "require missing_one, we can conclude nothing.");
}

TEST_F(PythonEnvironment, AnotherPythonIsSaidAndPinsAreLoosened) {
  spec::Environment environment = Of({"pinned==1", "pinned~=1.0"});
  environment.python = "3.7";
  const auto made = Make(environment);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->note, HasSubstr("Python 3.7 is not on this machine and cannot be fetched: No "
                                    "download found for request: cpython-3.7; Python 3."));
  EXPECT_THAT(made->note, EndsWith("versions given by == or ~= are the least"));
  EXPECT_EQ(Make(environment)->note, made->note);  // also of those who find it made
  EXPECT_FALSE(Make(Of({"pinned==1"})).ok());      // on the Python that was asked for pins hold
}

TEST_F(PythonEnvironment, PinsWithoutABuildForThisPythonGetThatOfTheirDayUnlessOneIsNamed) {
  spec::Environment environment = Of({"pinned==1", "alpha"});
  const auto without = Make(environment).status();
  EXPECT_THAT(without.message(), HasSubstr("they may have builds for an older Python, but Python "
                                           "3.8 is not on this machine and cannot be fetched"));
  ASSERT_TRUE(base::WriteFileAtomic(tools_.path() / "python3.8", "").ok());
  const auto made = Make(environment);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->note, HasSubstr("Python 3.8 is taken, since the pinned versions have no builds "
                                    "for Python 3."));
  EXPECT_TRUE(fs::exists(made->folder / "is-3.8"));
  environment.python = "3.11";
  EXPECT_FALSE(Make(environment).ok());
  EXPECT_FALSE(fs::exists(Make(Of({"alpha"}))->folder / "is-3.8"));
  environment = Of({"missing==1"});
  EXPECT_THAT(Make(environment).status().message(), Not(HasSubstr("3.8")));
}

TEST_F(PythonEnvironment, OneWithoutAPythonsFolderIsAnErrorAndNoCrash) {
  ASSERT_TRUE(base::WriteFileAtomic(tools_.path() / "bare", "").ok());
  spec::Environment environment = Of({"alpha"});
  environment.python = "3.7";
  EXPECT_THAT(std::string(Make(environment).status().message()),
              EndsWith(" is no Python environment"));
}

TEST_F(PythonEnvironment, APythonThatIsThereIsTaken) {
  spec::Environment environment = Of({"alpha"});
  environment.python = "3.11";
  ASSERT_TRUE(base::WriteFileAtomic(tools_.path() / "python3.11", "#!/bin/sh\n", 0755).ok());
  const auto made = Make(environment);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->note, "");
  EXPECT_EQ(Calls("venv --python " + (tools_.path() / "python3.11").string()), 1);
  EXPECT_EQ(Calls("python find"), 0);
  EXPECT_EQ(Calls("python install"), 0);
}

TEST_F(PythonEnvironment, AFetchThatFailedIsNotTriedAgainAtOnce) {
  for (const char* package : {"alpha", "beta"}) {
    spec::Environment environment = Of({package});
    environment.python = "3.7";
    ASSERT_TRUE(Make(environment).ok());
  }
  EXPECT_EQ(Calls("python install"), 1);
}

TEST_F(PythonEnvironment, WhatAFileAsksForLoosensThePinsOfTheBuiltInTable) {
  spec::Environment environment = Of({"alpha==2"});
  environment.packages.push_back({"pinned~=1.2", "built-in table of curated environments:3"});
  const auto made = Make(environment);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->note, HasSubstr("versions of the image are the least"));
  environment.packages[1].location = "c.yml:3";
  EXPECT_FALSE(Make(environment).ok());
}

TEST_F(PythonEnvironment, Mlflow1GetsAnOlderSetuptools) {
  for (const auto& [package, setuptools] : {std::pair("mlflow==1.30.1", "setuptools<75"),
                                            std::pair("mlflow==2.9.2", "setuptools<81")}) {
    const auto made = Make(Of({package}));
    ASSERT_TRUE(made.ok()) << made.status();
    const fs::path packages = made->folder / "lib" / *LibraryOf(made->folder) / "site-packages";
    EXPECT_THAT(base::ReadFile(packages / "setuptools.py").value_or(""), HasSubstr(setuptools));
  }
}

TEST_F(PythonEnvironment, WhatSharesFilesIsHeldToOneVersionWhereItCanBeHad) {
  const auto made = Make(Of({"azureml-mlflow==1.52.0", "mlflow==2.5.0"}));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->note, "");
  EXPECT_THAT(base::ReadFile(tools_.path() / "constraints").value_or(""),
              HasSubstr("mlflow-skinny==2.5.0\n"));
  const auto other = Make(Of({"xgboost==1.5"}));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_THAT(other->note, EndsWith("cannot be had together: xgboost-cpu==1.5"));
}

TEST_F(PythonEnvironment, WithoutGpusItHasPyTorchsBuildsForCpusAndAnotherKey) {
  ::unsetenv("UV_NO_INDEX");  // nothing is pinned, so that no index is asked here either
  const auto of_cpu = Make(Of({"torch", "alpha"}));
  ASSERT_TRUE(of_cpu.ok()) << of_cpu.status();
  EXPECT_EQ(of_cpu->note, "");
  EXPECT_THAT(LogOf(*of_cpu), HasSubstr("requirements.txt --torch-backend=cpu\n"));
  node_has_gpus_ = true;
  const auto of_gpu = Make(Of({"torch", "alpha"}));
  ASSERT_TRUE(of_gpu.ok()) << of_gpu.status();
  EXPECT_NE(of_gpu->folder, of_cpu->folder);
  EXPECT_THAT(LogOf(*of_gpu), Not(HasSubstr("torch-backend")));
  spec::Environment cpuonly = Of({"torch", "alpha"});
  cpuonly.torch = "cpu";
  EXPECT_EQ(Make(cpuonly)->folder, of_cpu->folder);
  EXPECT_EQ(Make(Of({"alpha"}))->folder, (node_has_gpus_ = false, Make(Of({"alpha"}))->folder));
}

TEST_F(PythonEnvironment, WhereTheIndexOfPyTorchIsAwayThatOfAllPackagesServesAndALineSaysSo) {
  ::unsetenv("UV_NO_INDEX");
  ASSERT_TRUE(base::WriteFileAtomic(tools_.path() / "torch-is-away", "").ok());
  const auto made = Make(Of({"torch"}));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(
      made->note,
      "PyTorch's build \"cpu\" cannot be had (https://download.pytorch.org/whl/cpu/torch/: dns "
      "error): that of the package index is taken");
  EXPECT_THAT(LogOf(*made), HasSubstr("torch.txt --torch-backend=cpu\nerror: Failed to fetch"));
  EXPECT_THAT(LogOf(*made), Not(HasSubstr("requirements.txt --torch-backend")));
  fs::remove(tools_.path() / "torch-is-away");
  ASSERT_TRUE(base::WriteFileAtomic(tools_.path() / "torch-has-none", "").ok());
  const auto other = Make(Of({"torch==9"}));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_THAT(other->note, HasSubstr("cannot be had (not with the other packages)"));
}

// The pins are loosened for PyTorch's build first, and for the package index's with a note alone.
TEST_F(PythonEnvironment, OnAnotherPythonPyTorchsBuildStaysOrALineSaysSo) {
  ::unsetenv("UV_NO_INDEX");
  spec::Environment environment = Of({"torch", "pinned==1"});
  environment.python = "3.7";
  environment.as_of_pins = false;  // so that no index is asked
  const auto made = Make(environment);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->note, EndsWith("versions given by == or ~= are the least"));
  EXPECT_THAT(made->note, Not(HasSubstr("PyTorch")));
  EXPECT_THAT(LogOf(*made), HasSubstr("tools.txt --torch-backend=cpu\n"));
  ASSERT_TRUE(base::WriteFileAtomic(tools_.path() / "torch-has-none", "").ok());
  environment.packages.push_back({"alpha", "conda.yml:3"});
  const auto other = Make(environment);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_THAT(other->note, HasSubstr("PyTorch's build \"cpu\" cannot be had (not with the other"));
  EXPECT_THAT(LogOf(*other), Not(HasSubstr("tools.txt --torch-backend")));
}

TEST_F(PythonEnvironment, WithoutAWayToTheIndexItIsAskedOnceAndTheReasonIsOneLine) {
  ASSERT_TRUE(base::WriteFileAtomic(tools_.path() / "index-is-away", "").ok());
  spec::Environment environment = Of({"mlflow==2.5.0", "azureml-mlflow"});
  environment.packages.push_back({"pinned~=1.2", "built-in table of curated environments:3"});
  const absl::Status refused = Make(environment).status();
  EXPECT_TRUE(absl::IsUnavailable(refused));
  EXPECT_EQ(refused.message(),
            "no way to the package index (https://****@pypi.org/simple/alpha/: tcp connect error: "
            "Connection refused (os error 111))");
  EXPECT_EQ(Calls("pip install"), 1);
}

TEST_F(PythonEnvironment, ItsLogHasEachCommandWithWhatItSaidAndNoPasswords) {
  spec::Environment environment = Of({"xgboost==1.5"});
  environment.options = {"--index-url=https://me:pass@h.org/simple"};
  const auto made = Make(environment);
  ASSERT_TRUE(made.ok()) << made.status();
  const std::string log = LogOf(*made);
  EXPECT_THAT(log, HasSubstr(" venv --python "));
  EXPECT_THAT(log, HasSubstr("--index-url=https://****@h.org/simple"));
  EXPECT_THAT(log, HasSubstr("\nno version of xgboost-cpu==1.5\n"));
  EXPECT_THAT(log, HasSubstr("tools.txt"));
  EXPECT_THAT(log, Not(HasSubstr("me:pass")));
}

TEST_F(PythonEnvironment, ALongLogIsKeptToItsEndWhichSaysWhyAndWithoutPasswords) {
  const absl::Status refused = Make(Of({"chatty"})).status();
  EXPECT_THAT(std::string(refused.message()),
              EndsWith("chatty cannot be had: error: chatty fails late"));
  std::string log;
  for (const auto& entry : fs::directory_iterator(folder_.path() / "environments")) {
    if (entry.path().extension() == ".log") log = *base::ReadFile(entry.path());
  }
  EXPECT_GT(log.size(), 1500000u);
  EXPECT_THAT(log, EndsWith("\nhttps://****@h.org/x\nerror: chatty fails late\n"));
}

TEST_F(PythonEnvironment, ACancelledJobDoesNotWaitForIt) {
  std::thread canceller([&] {
    base::AwaitPatiently(absl::Seconds(30), [&] { return Calls("pip") > 0; });
    cancelled_ = true;
  });
  EXPECT_TRUE(absl::IsCancelled(Make(Of({"slow"})).status()));
  canceller.join();
}

TEST_F(PythonEnvironment, AJobsOwnSeesTheSharedOneAndChangesNothingInIt) {
  const auto shared = Make(Of({"alpha", "beta"}));
  ASSERT_TRUE(shared.ok()) << shared.status();
  for (const char* name : {"a.so", "libtbb.so", "pkgconfig", "zlib.so"}) {  // a package's libraries
    ASSERT_TRUE(base::WriteFileAtomic(shared->folder / "lib" / name, "").ok());
  }
  const fs::path own = folder_.path() / std::string(150, 'l') / std::string(100, 'o') / "python";
  ASSERT_TRUE(base::MakeDirectories(own.parent_path()).ok());
  ASSERT_TRUE(MakeJobPython(shared->folder, own).ok());
  const std::string python = (own / "bin/python").string();
  EXPECT_EQ(OutputOf({python, "-c", "import alpha, sys; print(alpha.value, sys.prefix)"}),
            absl::StrCat("alpha ", own.string(), "\n"));
  // A program of the shared environment runs in the job's own.
  EXPECT_EQ(OutputOf({(own / "bin/beta").string(), "1", "2 3"}), "beta ['1', '2 3']\n");
  // What the job installs comes first, and is the job's alone.
  const fs::path packages = own / "lib" / *LibraryOf(own) / "site-packages";
  ASSERT_TRUE(base::WriteFileAtomic(packages / "beta.py", "value = 'mine'\n").ok());
  EXPECT_EQ(OutputOf({(own / "bin/beta").string()}), "mine []\n");
  EXPECT_EQ(OutputOf({(shared->folder / "bin/beta").string()}), "beta []\n");
}

// mpi4py looks for libmpi in sys.prefix/lib, Jupyter for kernels in its share.
TEST_F(PythonEnvironment, AJobsOwnHasTheLibrariesAndDataOfTheSharedOne) {
  const auto shared = Make(Of({"alpha"}));
  ASSERT_TRUE(shared.ok()) << shared.status();
  for (const char* name :
       {"lib/libmpi.so.12", "share/kernels/a/kernel.json", "etc/mpi.conf", "include/mpi.h",
        "opt/mpi/lib/libfabric.so.1", "lib/a/b/c.so", ".lock"}) {
    ASSERT_TRUE(base::MakeDirectories((shared->folder / name).parent_path()).ok());
    ASSERT_TRUE(base::WriteFileAtomic(shared->folder / name, name).ok());
  }
  fs::create_symlink("libmpi.so.12", shared->folder / "lib/libmpi.so");
  fs::create_directory_symlink("lib", shared->folder / "lib64");
  const fs::path own = folder_.path() / "python";
  ASSERT_TRUE(MakeJobPython(shared->folder, own).ok());
  EXPECT_EQ(base::ReadFile(own / "share/kernels/a/kernel.json").value_or(""),
            "share/kernels/a/kernel.json");
  EXPECT_EQ(fs::read_symlink(own / "lib/libmpi.so.12"), shared->folder / "lib/libmpi.so.12");
  EXPECT_TRUE(fs::equivalent(own / "lib/libmpi.so", shared->folder / "lib/libmpi.so.12"));
  EXPECT_TRUE(fs::equivalent(own / "opt/mpi/lib/libfabric.so.1",
                             shared->folder / "opt/mpi/lib/libfabric.so.1"));
  EXPECT_TRUE(fs::equivalent(own / "lib64", own / "lib"));
  EXPECT_FALSE(fs::exists(own / "complete"));
  EXPECT_FALSE(fs::exists(own / ".lock"));
  // What the job adds is in none of the shared environment's folders.
  for (const char* name : {"lib/new.so", "lib/a/b/new.so", "share/kernels/new", "etc/new"}) {
    ASSERT_TRUE(base::WriteFileAtomic(own / name, "").ok());
    EXPECT_FALSE(fs::exists(shared->folder / name)) << name;
  }
}

}  // namespace
}  // namespace tutti::launch
