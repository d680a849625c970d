#include "platform/launch/process/python_state.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process/child_process.h"
#include "base/test_patience.h"

namespace tutti::launch {
namespace {

TEST(PythonState, IsToldByWhatIsDoneWithAnInterrupt) {
  EXPECT_EQ(PythonStateIn("SigIgn:\t0000000001001000\nSigCgt:\t0000000000000002\n"),
            PythonState::kRuns);
  EXPECT_EQ(PythonStateIn("SigIgn:\t0000000001001000\nSigCgt:\t0000000000010000\n"),
            PythonState::kEnded);
  EXPECT_EQ(PythonStateIn("SigIgn:\t0000000001001002\nSigCgt:\t0000000000000000\n"),
            PythonState::kUnknown);
  EXPECT_EQ(PythonStateIn(""), PythonState::kUnknown) << "it has gone";
}

// As mpi4py does it: a function of C that waits is called when Python has finalized.
TEST(PythonState, OfOneThatWaitsAsItEndsIsEnded) {
  const base::TemporaryDirectory folder("python");
  const auto script = folder.path() / "train.py", go = folder.path() / "go";
  ASSERT_TRUE(base::WriteFileAtomic(script, R"(import ctypes, os, sys, time
c = ctypes.CDLL(None)
ctypes.pythonapi.Py_AtExit.argtypes = [ctypes.c_void_p]
ctypes.pythonapi.Py_AtExit(ctypes.cast(c.pause, ctypes.c_void_p))
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
sys.exit(7)
)")
                  .ok());
  base::ChildOptions options;
  options.arguments = {"/usr/bin/env", "python3", script.string(), go.string()};
  options.environment = base::CurrentEnvironment();
  options.die_with_parent = true;
  auto python = base::ChildProcess::Start(options);
  ASSERT_TRUE(python.ok()) << python.status();
  const auto is = [&](PythonState state) {
    return [&, state] { return PythonStateOf({::getpid(), python->pid()}) == state; };
  };
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), is(PythonState::kRuns)));
  ASSERT_TRUE(base::WriteFileAtomic(go, "").ok());
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), is(PythonState::kEnded)));
  EXPECT_TRUE(python->SignalGroup(SIGKILL).ok());
  EXPECT_TRUE(python->Wait(base::Deadline::After(base::Patient(absl::Seconds(20)))).ok());
}

}  // namespace
}  // namespace tutti::launch
