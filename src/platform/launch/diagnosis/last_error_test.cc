// Covers: error_line.cc, exception_message.cc, native_error.cc, printed_lines.cc,
// python_exception.cc.
#include "platform/launch/diagnosis/last_error.h"

#include <gtest/gtest.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace tutti::launch {
namespace {

TEST(LastErrorTest, FindsTheExceptionOfAPythonTraceback) {
  EXPECT_EQ(
      LastError(
          "start\nTraceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n"
          "    raise ValueError('no such label: 17')\n    ^^^^^\nValueError: no such label: 17\n"
          "[W] destructor noise\n"),
      "ValueError: no such label: 17");
  EXPECT_EQ(
      LastError("Traceback (most recent call last):\n  File \"a\"\nKeyError: 'x'\n\nDuring handling"
                " of the above exception, another exception occurred:\n\n"
                "Traceback (most recent call last):\n  File \"b\"\n"
                "torch.cuda.OutOfMemoryError: CUDA out of memory.\nTried to allocate\n"),
      "KeyError: 'x' (while that was handled: torch.cuda.OutOfMemoryError: CUDA out of memory. "
      "Tried to allocate)");
  EXPECT_EQ(LastError("Traceback (most recent call last):\n  File \"a\"\nKeyboardInterrupt\n"),
            "KeyboardInterrupt");
}

TEST(LastErrorTest, SaysWhereAnExceptionWithoutTextWasAndHowALongOneGoesOn) {
  EXPECT_EQ(LastError("Traceback (most recent call last):\n  File \"/w/main.py\", line 9, in main\n"
                      "    check(x)\n  File \"/w/train.py\", line 2, in check\n"
                      "    assert x == 4\nAssertionError\n"),
            "AssertionError at train.py:2: assert x == 4");
  const std::string syntax =
      "  File \"/w/b.py\", line 3\n    def f(:\n          ^\nSyntaxError: invalid syntax\n";
  EXPECT_EQ(LastError(syntax), "SyntaxError: invalid syntax at b.py:3: def f(:");
  EXPECT_EQ(
      LastError("Traceback (most recent call last):\n  File \"/w/a.py\", line 1, in <module>\n"
                "    import b\n" +
                syntax),
      "SyntaxError: invalid syntax at b.py:3: def f(:");
  EXPECT_EQ(LastError("Traceback (most recent call last):\n  File \"a\"\n"
                      "RuntimeError: Error(s) in loading state_dict for Linear:\n"
                      "\tMissing key(s) in state_dict: \"weight\".\n"),
            "RuntimeError: Error(s) in loading state_dict for Linear: "
            "Missing key(s) in state_dict: \"weight\".");
}

TEST(LastErrorTest, KeepsMessagesOfSeveralLinesWhole) {
  const std::string traceback = "Traceback (most recent call last):\n  File \"a\"\n";
  EXPECT_EQ(LastError(traceback + "ValueError: \nexpected 3 channels\nbut got 4\n"),
            "ValueError: expected 3 channels but got 4");
  EXPECT_EQ(LastError(traceback + "RuntimeError: these files are missing:\n  - /data/a.tar\n"),
            "RuntimeError: these files are missing: - /data/a.tar");
  EXPECT_EQ(LastError(traceback + "RuntimeError: stopped:\n\nDuring handling of the above "
                                  "exception, another exception occurred:\n\n"),
            "RuntimeError: stopped:");
  EXPECT_EQ(LastError(traceback + "pydantic_core.ValidationError: 1 validation error for Config\n"
                                  "lr\n  Field required [type=missing]\n    For more see x\n"),
            "pydantic_core.ValidationError: 1 validation error for Config lr "
            "Field required [type=missing] For more see x");
}

TEST(LastErrorTest, AWarningOfPythonIsNoPartOfTheMessageBeforeIt) {
  const std::string traceback = "Traceback (most recent call last):\n  File \"a\"\n";
  for (const char* warning : {"/usr/lib/python3.11/multiprocessing/resource_tracker.py:224: "
                              "UserWarning: resource_tracker: There appear to be 1 leaked objects",
                              "sys:1: ResourceWarning: unclosed file",
                              "<frozen importlib._bootstrap>:241: DeprecationWarning: old type"}) {
    EXPECT_EQ(LastError(traceback + "ValueError: no such label\n" + warning + "\n  warn(x)\n"),
              "ValueError: no such label")
        << warning;
  }
  EXPECT_EQ(LastError(traceback + "ValueError: no label\nUserWarning: was shown before it\n"),
            "ValueError: no label UserWarning: was shown before it");
}

TEST(LastErrorTest, AMessageThatBeginsWithARuleIsToldWithoutItsFrame) {
  const std::string traceback = "Traceback (most recent call last):\n  File \"a\"\n";
  const std::string rule = std::string(75, '-') + "\n";
  EXPECT_EQ(LastError(traceback + "RuntimeError: \n" + rule + "2 files are missing:\n  a.tar\n" +
                      rule + "See prepare.py\n"),
            "RuntimeError: 2 files are missing: a.tar See prepare.py");
  EXPECT_EQ(LastError(traceback + "RuntimeError: \n" + rule + "no data\n==========\nnoise\n"),
            "RuntimeError: no data");
  EXPECT_EQ(LastError(traceback + "RuntimeError: \n---------- shard 3 ----------\nno data\n"),
            "RuntimeError: ---------- shard 3 ---------- no data");
  EXPECT_EQ(LastError(traceback + "RuntimeError: no data:\n" + rule + "noise\n"),
            "RuntimeError: no data:");
}

TEST(LastErrorTest, PassesOverWhereANodeOfAGraphWasMade) {
  EXPECT_EQ(LastError("Traceback (most recent call last):\n  File \"t.py\", line 12, in <module>\n"
                      "tensorflow.python.framework.errors_impl.InvalidArgumentError: "
                      "Graph execution error:\n\n"
                      "Detected at node 'loss/Softmax' defined at (most recent call last):\n"
                      "    File \"t.py\", line 12, in <module>\n      model.fit(x, y)\n"
                      "Node: 'loss/Softmax'\n"
                      "Received a label value of 17 which is outside the valid range of [0, 10).\n"
                      "\t [[{{node loss/Softmax}}]] [Op:__inference_train_function_604]\n"),
            "tensorflow.python.framework.errors_impl.InvalidArgumentError: Graph execution error: "
            "Received a label value of 17 which is outside the valid range of [0, 10).");
}

TEST(LastErrorTest, TellsWhatNcclAdds) {
  EXPECT_EQ(LastError("[rank1]: Traceback (most recent call last):\n[rank1]:   File \"a\"\n"
                      "[rank1]: torch.distributed.DistBackendError: NCCL error in: N.cpp:94, "
                      "unhandled system error (run with NCCL_DEBUG=INFO for details)\n"
                      "[rank1]: ncclSystemError: System call (e.g. socket, malloc) failed. \n"
                      "[rank1]: Last error:\n[rank1]: Call to connect returned No route\n"),
            "torch.distributed.DistBackendError: NCCL error in: N.cpp:94, unhandled system error "
            "(run with NCCL_DEBUG=INFO for details) ncclSystemError: System call (e.g. socket, "
            "malloc) failed. Last error: Call to connect returned No route");
}

TEST(LastErrorTest, PassesOverWhatADestructorThrew) {
  EXPECT_EQ(LastError("Traceback (most recent call last):\n  File \"a\"\nValueError: the real one\n"
                      "Exception ignored in: <function A.__del__ at 0x7f>\n"
                      "Traceback (most recent call last):\n  File \"a\"\nOSError: in del\n"),
            "ValueError: the real one");
}

TEST(LastErrorTest, TellsAGroupOfExceptionsAndTheFirstOfThem) {
  EXPECT_EQ(LastError("  + Exception Group Traceback (most recent call last):\n"
                      "  |   File \"t.py\", line 1, in <module>\n"
                      "  | ExceptionGroup: two failed (2 sub-exceptions)\n"
                      "  +-+---------------- 1 ----------------\n    | ValueError: one\n"
                      "    +---------------- 2 ----------------\n    | OSError: two\n"
                      "    +------------------------------------\n"),
            "ExceptionGroup: two failed (2 sub-exceptions): ValueError: one");
}

TEST(LastErrorTest, NamesTheHostThatNobodyKnows) {
  EXPECT_EQ(
      LastError("[W1120 socket.cpp:764] [c10d] The IPv4 network addresses of (no-such, 2345) "
                "cannot be retrieved (gai error: -2 - Name or service not known).\n"
                "Traceback (most recent call last):\n  File \"a\"\n"
                "torch.distributed.DistNetworkError: The client socket has timed out after "
                "5000ms while trying to connect to (no-such, 2345).\n"),
      "torch.distributed.DistNetworkError: The client socket has timed out after 5000ms while "
      "trying to connect to (no-such, 2345). (gai error: -2 - Name or service not known)");
}

TEST(LastErrorTest, OfOneThatRunsAnExceptionAloneCountsAndOneThatWasShownLately) {
  const std::string shown = "Traceback (most recent call last):\n  File \"a\"\nKeyError: 'x'\n";
  EXPECT_EQ(LastException(shown + "[W] destroy_process_group() was not called\n"), "KeyError: 'x'");
  std::string goes_on = shown;
  for (int i = 0; i < 100; ++i) goes_on += "step\n";
  EXPECT_EQ(LastException(goes_on), "");
  EXPECT_EQ(LastException("error: it goes wrong\n"), "");
}

TEST(LastErrorTest, FindsWhatOfACppException) {
  EXPECT_EQ(LastError("terminate called after throwing an instance of 'std::runtime_error'\n"
                      "  what():  cannot open shard 3\n"),
            "std::runtime_error: cannot open shard 3");
  EXPECT_EQ(LastError("terminate called after throwing an instance of 'c10::Error'\n"
                      "terminate called recursively\n  what():  CUDA error: no memory\n"
                      "Exception raised from f at c10/cuda/x.cpp:1\n"),
            "c10::Error: CUDA error: no memory");
  EXPECT_EQ(LastError("terminate called after throwing an instance of 'std::bad_alloc'\n"
                      "  what():  std::bad_alloc\nterminate called recursively\n"),
            "std::bad_alloc");
  EXPECT_EQ(LastError("terminate called after throwing an instance of 'int'\nAborted\n"),
            "terminate called after throwing an instance of 'int'");
  EXPECT_EQ(LastError("terminate called without an active exception\n"),
            "terminate called without an active exception");
}

TEST(LastErrorTest, SaysWhereNativeCodeFailedIfPythonDoes) {
  EXPECT_EQ(LastError("Fatal Python error: Segmentation fault\n\n"
                      "Thread 0x00007f9b (most recent call first):\n"
                      "  File \"/usr/lib/threading.py\", line 327 in wait\n\n"
                      "Current thread 0x00007f9c (most recent call first):\n"
                      "  File \"/w/model.py\", line 3 in forward\n"
                      "  File \"/w/train.py\", line 4 in <module>\n"
                      "/bin/bash: line 1:    71 Segmentation fault      python train.py\n"),
            "Fatal Python error: Segmentation fault at model.py:3 in forward");
}

TEST(LastErrorTest, TellsWhoCalledMpiAbort) {
  const std::string text =
      "-----------------------\nMPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\n"
      "with errorcode 7.\n\nNOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.\n"
      "-----------------------\n";
  const std::string line =
      "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD with errorcode 7.";
  EXPECT_EQ(LastError(text), line);
  EXPECT_EQ(LastException(text), line);
  EXPECT_EQ(LastError("Traceback (most recent call last):\n  x\nValueError: boom\n" + text),
            "ValueError: boom");
}

TEST(LastErrorTest, TellsTheSignalThatOpenMpiCaughtAndWhere) {
  const std::string begin =
      "[n1:71] *** Process received signal ***\n[n1:71] Signal: Segmentation fault (11)\n";
  EXPECT_EQ(
      LastError(begin + "[n1:71] Signal code: Address not mapped (1)\n"
                        "[n1:71] Failing at address: (nil)\n"
                        "[n1:71] [ 0] /lib/libc.so.6(+0x3c050)[0x7f0000000000]\n"
                        "[n1:71] [ 1] ./train(+0x11ba)[0x7f0000000000]\n"
                        "[n1:71] *** End of error message ***\n"),
      "Segmentation fault (11): Address not mapped (1) at address (nil), in ./train(+0x11ba)");
  EXPECT_EQ(LastError(begin), "Segmentation fault (11)");
}

TEST(LastErrorTest, KnowsTheRankThatFailedInMpiFromMpirun) {
  const MpiFailure call = MpiFailureIn(
      "[n1:71] *** An error occurred in MPI_Send\n[n1:71] *** reported by process [179,12]\n"
      "[n1:71] *** on communicator MPI_COMM_WORLD\n[n1:71] *** MPI_ERR_RANK: invalid rank\n");
  EXPECT_EQ(call.rank, 12);
  EXPECT_EQ(call.error, "An error occurred in MPI_Send: MPI_ERR_RANK: invalid rank");
  EXPECT_FALSE(call.abort);
  const std::string notice =
      "--------------------\nMPI_ABORT was invoked on rank 3 in communicator ";
  const MpiFailure abort = MpiFailureIn(notice + "MPI_COMM_WORLD\n  Errorcode: 7\n");
  EXPECT_EQ(abort.rank, 3);
  EXPECT_TRUE(abort.abort);
  const MpiFailure left = MpiFailureIn(
      "mpirun has exited due to process rank 1 with PID 0 on\nnode n1 exiting improperly. There "
      "are");
  EXPECT_EQ(left.rank, 1);
  EXPECT_TRUE(left.left);
  EXPECT_EQ(MpiFailureIn("mpirun has exited due to process rank 1 with PID 0 on\nnode n1\n").rank,
            -1);
  EXPECT_EQ(MpiFailureIn(notice + "SPLIT\nwith errorcode 7.\n").rank, -1);
  const MpiFailure killed = MpiFailureIn(
      "orterun noticed that process rank 1 with PID 4091 on node n4 exited on signal 9 "
      "(Killed).\n");
  EXPECT_EQ(killed.rank, 1);
  EXPECT_TRUE(killed.left);
  EXPECT_EQ(MpiFailureIn("prterun noticed that process rank 12 with PID 7 on node a.long.name\n"
                         "exited on signal 9 (Killed).\n")
                .rank,
            12);
  EXPECT_EQ(MpiFailureIn("mpirun noticed that process rank 1 with PID 7 on node n4 exited on "
                         "signal 11 (Segmentation fault).\n")
                .rank,
            -1)
      << "of which its own words say more";
  EXPECT_EQ(MpiFailureIn("Primary job terminated normally, but 1 process returned\n").rank, -1);
}

TEST(LastErrorTest, PrefersALineThatSaysErrorToTheLastOne) {
  EXPECT_EQ(LastError("step 1\nerror: no data in /x\nbye\n"), "error: no data in /x");
  EXPECT_EQ(LastError("/bin/bash: line 1: trian: command not found\n"),
            "/bin/bash: line 1: trian: command not found");
  EXPECT_EQ(LastError("/bin/bash: line 1: DATA: unbound variable\nbye\n"),
            "/bin/bash: line 1: DATA: unbound variable");
  EXPECT_EQ(LastError("  File \"train.py\", line 3\n    if x\n        ^\n"
                      "SyntaxError: expected ':'\n"),
            "SyntaxError: expected ':' at train.py:3: if x");
  EXPECT_EQ(LastError("one\ntwo\n\n"), "two");
  EXPECT_EQ(LastError(""), "");
  EXPECT_EQ(LastError("\n \n"), "");
}

TEST(LastErrorTest, ASentenceOverLinesIsToldWhole) {
  EXPECT_EQ(LastError("the data set\nhas no labels\n\n"), "the data set has no labels");
  EXPECT_EQ(LastError("Using device cuda\nNo labels\n"), "No labels");
  EXPECT_EQ(LastError("loss is now 0.25\nno labels\n"), "no labels");
  EXPECT_EQ(LastError("a b\nc d\ne f\ng h\nno labels\n"), "no labels");
}

TEST(LastErrorTest, ALoggedErrorHoldsTheLinesBelowThatAreFurtherIn) {
  EXPECT_EQ(LastError("ERROR:root:no data\n  cannot open x\nbye\n"),
            "ERROR:root:no data cannot open x");
  EXPECT_EQ(LastError("ERROR:root:no data:\n  cannot open x\nFATAL: no loader\n"),
            "FATAL: no loader (after: ERROR:root:no data: cannot open x)");
}

TEST(LastErrorTest, WhatIsFatalOnStdoutStandsBeforeAnotherProgramsError) {
  const char removal[] = "rm: cannot remove 'x': No such file or directory\n";
  EXPECT_EQ(
      LastError(removal, "step 1\nFATAL: disk quota exceeded\n"),
      "FATAL: disk quota exceeded (beside: rm: cannot remove 'x': No such file or directory)");
  EXPECT_EQ(LastError(removal, "ERROR: went on\n"), absl::StripAsciiWhitespace(removal));
  EXPECT_EQ(LastError("Error: no labels\n", "FATAL: x\n"), "Error: no labels");
}

TEST(LastErrorTest, TheLastLineIsToldWithTheLineThatAnnouncesIt) {
  EXPECT_EQ(LastError("reading\nno data in /data:\ngive --init\nor --from\n"),
            "no data in /data: give --init or --from");
  EXPECT_EQ(LastError("no data:\n12:00\n2026-11-20 12:00:00 start\nbye\n"), "bye");
  EXPECT_EQ(LastError("INFO: files:\nbye\n"), "bye") << "a log's line announces nothing";
  EXPECT_EQ(LastError("files:\nINFO: bye\n"), "INFO: bye");
  std::string far = "files:\n";
  for (int i = 0; i < 100; ++i) far += "step\n";
  EXPECT_EQ(LastError(far), "step");
}

TEST(LastErrorTest, AnExceptionOnStdoutComesAfterErrorsOfStderrAndBeforeItsLastLine) {
  const char* out =
      "epoch 1\nTraceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n"
      "ConfigError: no such key: lr\n";
  EXPECT_EQ(LastError("", out), "ConfigError: no such key: lr");
  EXPECT_EQ(LastError("loading\n", out), "ConfigError: no such key: lr");
  EXPECT_EQ(LastError("bash: line 1: x: command not found\n", out),
            "bash: line 1: x: command not found");
  EXPECT_EQ(LastError("last words\n", "epoch 1\nepoch 2\n"), "last words");
  EXPECT_EQ(LastError("", "epoch 1\nepoch 2\n"), "");
}

TEST(LastErrorTest, AnErrorAmongResultsCountsIfStderrIsSilent) {
  for (const char* error :
       {"ERROR: no data in /data", "2026-11-20 12:00:00,123 root ERROR no data", "[FATAL] no data",
        "Error: no data", "train.py: error: unrecognized arguments: --learn",
        "bash: line 1: trian: command not found", "tar: a.bin: Cannot open: No such file"}) {
    const std::string out = absl::StrCat("error: 0.3\n", error, "\nbye\n");
    EXPECT_EQ(LastError("", out), error);
    EXPECT_EQ(LastError("last words\n", out), "last words");
  }
  for (const char* result : {"error: 0.3", "validation: error 0.3", "val/error: 3e-1", "error=0.1",
                             "errors 0, failed 0", "TERRORS: none", "0 failed"}) {
    EXPECT_EQ(LastError("", absl::StrCat("epoch 1\n", result, "\n")), "") << result;
  }
  std::string later = "ERROR: a record was passed over\n";
  for (int i = 0; i < 100; ++i) later += "step\n";
  EXPECT_EQ(LastError("", later), "") << "it went on";
}

TEST(LastErrorTest, IsShortPlainAndValidUtf8) {
  EXPECT_EQ(LastError("10%\r50%\r\x1b[31mfatal: red\x1b[0m\n"), "fatal: red");
  EXPECT_EQ(LastError("bad \xff\xfe byte"), "bad ?? byte");
  EXPECT_EQ(LastError("h\xc3\xa9"), "h\xc3\xa9");
  EXPECT_LE(LastError(std::string(100000, 'x')).size(), 506u);
  EXPECT_EQ(LastError("error: " + std::string(100000, 'x') + " why").substr(500), "why")
      << "of a long one the end stays, too";
}

TEST(LastErrorTest, TheProcesssOwnExceptionComesBeforeItsStarters) {
  EXPECT_EQ(LastError("[rank1]: Traceback (most recent call last):\n"
                      "[rank1]:   File \"train.py\", line 3, in <module>\n"
                      "[rank1]: ValueError: boom\n"
                      "E1120 12:00:00 api.py:702] failed (exitcode: 1)\n"
                      "Traceback (most recent call last):\n"
                      "  File \"/bin/torchrun\", line 8, in <module>\n"
                      "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
                      "=====\ntrain.py FAILED\n"),
            "ValueError: boom");
  EXPECT_EQ(LastError("Traceback (most recent call last):\n  File \"/bin/torchrun\", line 8\n"
                      "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
                      "  exitcode  : -9 (pid: 71)\n  error_file: <N/A>\n"
                      "  traceback : Signal 9 (SIGKILL) received by PID 71\n"),
            "a process that it started was ended: Signal 9 (SIGKILL) received by PID 71");
  EXPECT_EQ(LastError("Traceback (most recent call last):\n  File \"a\"\n"
                      "subprocess.CalledProcessError: Command '['python']' returned 1.\n"),
            "subprocess.CalledProcessError: Command '['python']' returned 1.");
}

TEST(LastErrorTest, AnErrorThatIsNoExceptionComesBeforeItsStarters) {
  const std::string torchrun =
      "E1120 12:00:00 api.py:702] failed (exitcode: 2) local_rank: 0 (pid: 71) of binary: python\n"
      "Traceback (most recent call last):\n  File \"/bin/torchrun\", line 8, in <module>\n"
      "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n=====\n"
      "train.py FAILED\nRoot Cause (first observed failure):\n  rank      : 0 (local_rank: 0)\n"
      "  exitcode  : 2 (pid: 71)\n  error_file: <N/A>\n  traceback : To enable traceback see: x\n";
  EXPECT_EQ(LastError("train.py: error: unrecognized arguments: --learn\n" + torchrun),
            "train.py: error: unrecognized arguments: --learn");
  EXPECT_EQ(LastError("terminate called after throwing an instance of 'std::runtime_error'\n"
                      "  what():  cannot open shard 3\n" +
                      torchrun),
            "std::runtime_error: cannot open shard 3");
  EXPECT_EQ(LastError("", "train.py: error: unrecognized arguments: --learn\n" + torchrun),
            "train.py: error: unrecognized arguments: --learn");
  EXPECT_EQ(LastError(torchrun), "a process that it started failed with exit code 2 (pid: 71)");
  EXPECT_EQ(LastError("gcc: fatal error: no input files\n"
                      "Traceback (most recent call last):\n  File \"setup.py\", line 3\n"
                      "subprocess.CalledProcessError: Command '['gcc']' returned 1.\n"),
            "gcc: fatal error: no input files");
}

TEST(LastErrorTest, TheWordsOfAStartedProgramAreTheCauseOfWhatIsRaisedFromItsExitCode) {
  const std::string starter =
      "Traceback (most recent call last):\n  File \"/w/a.py\", line 4, in fetch\n"
      "    subprocess.run(['wget', url], check=True)\n"
      "subprocess.CalledProcessError: Command '['wget']' returned non-zero exit status 4.\n\n"
      "The above exception was the direct cause of the following exception:\n\n"
      "Traceback (most recent call last):\n  File \"/w/a.py\", line 6, in <module>\n"
      "    raise RuntimeError('no data') from error\nRuntimeError: no data\n";
  EXPECT_EQ(LastError("wget: unable to resolve host address 'data.example'\n" + starter),
            "RuntimeError: no data (caused by wget: unable to resolve host address "
            "'data.example')");
  EXPECT_EQ(LastError("epoch 1\n" + starter),
            "RuntimeError: no data (caused by subprocess.CalledProcessError: Command '['wget']' "
            "returned non-zero exit status 4.)");
}

TEST(LastErrorTest, TheEarliestExceptionOfAChainIsTheCause) {
  const std::string first =
      "Traceback (most recent call last):\n  File \"/w/a.py\", line 4, in load\n"
      "    return json.load(open(path))\nFileNotFoundError: no such file: 'c.json'\n\n";
  const std::string second =
      "Traceback (most recent call last):\n  File \"/w/a.py\", line 7, in <module>\n    load()\n"
      "  File \"/w/a.py\", line 6, in load\n    raise ValueError('no configuration')\n"
      "ValueError: no configuration\n";
  const std::string from =
      "The above exception was the direct cause of the following exception:\n\n";
  const std::string handling =
      "During handling of the above exception, another exception occurred:\n\n";
  const std::string in_other_words =
      "ValueError: no configuration (caused by FileNotFoundError: no such file: 'c.json')";
  EXPECT_EQ(LastError(first + from + second), in_other_words);
  EXPECT_EQ(LastError(first + handling + second), in_other_words) << "the same function raised it";
  const auto elsewhere = [&](const std::string& error) {
    return LastError(first + handling +
                     "Traceback (most recent call last):\n  File \"/w/a.py\", line 9, in close\n"
                     "    os.remove('lock')\n" +
                     error);
  };
  EXPECT_EQ(elsewhere("OSError: no lock\n"),
            "FileNotFoundError: no such file: 'c.json' (while that was handled: OSError: no lock)");
  EXPECT_EQ(elsewhere("RuntimeError: [pair.cc:534] Connection closed by peer\n"),
            "FileNotFoundError: no such file: 'c.json'");
}

TEST(LastErrorTest, AnOldPythonShowsTheLastLineOfARaise) {
  const auto after = [](const std::string& code, const std::string& error) {
    return LastError(
        "Traceback (most recent call last):\n  File \"a.py\", line 4, in load\n    x[k]\n"
        "KeyError: 'k'\n\nDuring handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\n  File \"a.py\", line 9, in <module>\n    load()\n"
        "  File \"a.py\", line 7, in load\n    " +
        code + "\n" + error + "\n");
  };
  const std::string told = "DataError: none (caused by KeyError: 'k')";
  for (const char* code : {"\"none\"", "f'no {k}'.format(k)", "known=list(x),", "message", "k))"}) {
    EXPECT_EQ(after(code, "DataError: none"), told) << code;
  }
  for (const char* code : {"close(", "y = x == 2", "shutil.copy(a, b)", "del message"}) {
    EXPECT_EQ(after(code, "DataError: none"),
              "KeyError: 'k' (while that was handled: DataError: none)")
        << code;
  }
  EXPECT_EQ(after("known=error.x,", "AttributeError: 'KeyError' object has no attribute 'x'"),
            "KeyError: 'k' (while that was handled: AttributeError: 'KeyError' object has no "
            "attribute 'x')");
}

TEST(LastErrorTest, OfSeveralRanksTheOneThatSpeaksOfNoLostPeer) {
  const std::string lost =
      "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"a\"\n"
      "[rank0]: RuntimeError: [pair.cc:534] Connection closed by peer [10.0.0.2]:4711\n";
  const std::string own =
      "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"a\"\n"
      "[rank1]: KeyError: 'x'\n";
  EXPECT_EQ(LastError(own + lost), "KeyError: 'x'");
  EXPECT_EQ(LastError(lost + own), "KeyError: 'x'");
  EXPECT_EQ(LastError("[rank0]: Traceback (most recent call last):\n"
                      "[rank1]: Traceback (most recent call last):\n[rank0]:   File \"a\"\n"
                      "[rank1]:   File \"a\"\n[rank1]: KeyError: 'x'\n"
                      "[rank0]: RuntimeError: Connection reset by peer\n"),
            "KeyError: 'x'")
      << "their lines mix";
  EXPECT_EQ(LastError(lost + "Traceback (most recent call last):\n  File \"/bin/torchrun\"\n"
                             "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
                             "  traceback : Signal 9 (SIGKILL) received by PID 71\n"),
            "a process that it started was ended: Signal 9 (SIGKILL) received by PID 71");
}

TEST(LastErrorTest, OfErrorsOneAfterTheOtherTheFirst) {
  EXPECT_EQ(LastError("wget: unable to resolve host address 'data.org'\n"
                      "unzip:  cannot find or open images.zip.\n"
                      "rm: cannot remove 'images.zip': No such file or directory\n"),
            "wget: unable to resolve host address 'data.org'");
  EXPECT_EQ(LastError("warning: error 3 in the cache\nerror: no data\n"), "error: no data");
  std::string later = "error: a record was passed over\n";
  for (int i = 0; i < 100; ++i) later += "step\n";
  EXPECT_EQ(LastError(later + "error: no data\n"), "error: no data") << "it went on between them";
  EXPECT_EQ(LastError("bash: line 1: get-data: command not found\n"
                      "Traceback (most recent call last):\n  File \"a\"\n"
                      "FileNotFoundError: [Errno 2] No such file or directory: 'data/0'\n"),
            "bash: line 1: get-data: command not found");
}

TEST(LastErrorTest, AWarningBeforeAnErrorOfTheSameProgramIsNotTheCause) {
  EXPECT_EQ(LastError("train.sh: line 4: warning: here-document at line 2 delimited by "
                      "end-of-file (wanted `EOF')\n"
                      "train.sh: line 5: syntax error: unexpected end of file\n"),
            "train.sh: line 5: syntax error: unexpected end of file");
  EXPECT_EQ(LastError("tar: a.bin: Wrote only 4608 of 10240 bytes\ntar: warning: skipping\n"
                      "tar: Exiting with failure status due to previous errors\n"),
            "tar: a.bin: Wrote only 4608 of 10240 bytes");
  EXPECT_EQ(LastError("ERROR: Ignored the following yanked versions: 2.4.0\n"
                      "ERROR: Could not find a version that satisfies the requirement numpy==1.99\n"
                      "ERROR: No matching distribution found for numpy==1.99\n"),
            "ERROR: Could not find a version that satisfies the requirement numpy==1.99");
}

TEST(LastErrorTest, AnAssertionIsTheCauseOfAnAbortAndOfWhatCudaSaysOfIt) {
  const std::string kernel =
      "Loss.cu:240: nll_loss: block: [0,0,0], thread: [3,0,0] Assertion `t >= 0 && t < n_classes` "
      "failed.\n";
  EXPECT_EQ(LastError(kernel + kernel +
                      "Traceback (most recent call last):\n  File \"a\"\n"
                      "torch.AcceleratorError: CUDA error: device-side assert triggered\n"
                      "CUDA kernel errors might be asynchronously reported\n") +
                "\n",
            kernel);
  EXPECT_EQ(
      LastError("train: train.cc:2: int main(): Assertion `n == 2' failed.\n"
                "mpirun noticed that process rank 1 with PID 71 on node n1 exited on signal 6 "
                "(Aborted).\n"),
      "train: train.cc:2: int main(): Assertion `n == 2' failed.");
}

TEST(LastErrorTest, ALineThatAnnouncesMoreIsToldWithIt) {
  EXPECT_EQ(
      LastError("CMake Error at CMakeLists.txt:3 (find_package):\n  Could not find X.\n\nend\n"),
      "CMake Error at CMakeLists.txt:3 (find_package): Could not find X.");
}

TEST(LastErrorTest, AStderrThatIsOneShortMessageIsToldWhole) {
  EXPECT_EQ(LastError("cannot start\nno data in /data\nno model in /model\n"),
            "cannot start no data in /data no model in /model");
  EXPECT_EQ(LastError("cannot start\n  no data in /data\n"), "cannot start no data in /data");
  EXPECT_EQ(LastError("error: not there:\n/data/a\n/data/b\n"),
            "error: not there: /data/a /data/b");
  EXPECT_EQ(LastError("cannot start\nerror: no data\n"), "cannot start") << "two messages";
  EXPECT_EQ(LastError("cannot open a\ncannot open b\n"), "cannot open a") << "two messages";
  EXPECT_EQ(LastError("cannot start\nINFO: bye\n"), "cannot start");
  std::string on = "cannot read the cache\n";
  for (int i = 0; i < 6; ++i) on += "step\n";
  EXPECT_EQ(LastError(on), "cannot read the cache") << "it went on";
}

TEST(LastErrorTest, WhatAProgramSaysAfterAnErrorAmongOtherLinesIsNoPartOfIt) {
  EXPECT_EQ(
      LastError("epoch 2 done\nerror: could not open checkpoint:\nepoch 3 done\nepoch 4 done\n"),
      "error: could not open checkpoint:");
}

TEST(LastErrorTest, PassesOverWhatJaxPutsBeforeAnException) {
  const std::string from =
      "\nThe above exception was the direct cause of the following exception:\n\n"
      "Traceback (most recent call last):\n  File \"a.py\", line 9, in <module>\n    step(x)\n"
      "ValueError: bad shape\n";
  EXPECT_EQ(
      LastError("jax.errors.SimplifiedTraceback: For simplicity, JAX has removed its internal "
                "frames from the traceback of the following exception. Set "
                "JAX_TRACEBACK_FILTERING=off to include these.\n" +
                from),
      "ValueError: bad shape");
  EXPECT_EQ(LastError("Traceback (most recent call last):\n  File \"a.py\", line 9, in <module>\n"
                      "    step(x)\n"
                      "jax._src.traceback_util.UnfilteredStackTrace: ValueError: bad shape\n\n"
                      "The stack trace below excludes JAX-internal frames.\n" +
                      from),
            "ValueError: bad shape");
}

TEST(EndsWithExceptionTest, HoldsWhileNothingIsPrintedAfterIt) {
  const std::string raised =
      "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n"
      "ValueError: bad rank\nand its second line\n";
  EXPECT_TRUE(EndsWithException(raised));
  EXPECT_FALSE(EndsWithException(raised + "INFO: trying again\n"));
  EXPECT_FALSE(EndsWithException("ValueError: bad rank\n"));
}

}  // namespace
}  // namespace tutti::launch
