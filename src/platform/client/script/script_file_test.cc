#include "platform/client/script/script_file.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace tutti::client {
namespace {

class ScriptFileTest : public testing::Test {
 protected:
  std::filesystem::path File(const std::string& name, const std::string& text, int mode = 0644) {
    const auto path = folder_.path() / name;
    EXPECT_TRUE(base::WriteFileAtomic(path, text, mode).ok());
    return path;
  }
  base::TemporaryDirectory folder_;
};

TEST_F(ScriptFileTest, AScriptIsToldByNameFirstLineOrFirstBytes) {
  EXPECT_EQ(KindOfScript(File("train.py", "print()\n")), ScriptKind::kPython);
  EXPECT_EQ(KindOfScript(File("run.sh", "echo\n")), ScriptKind::kShell);
  EXPECT_EQ(KindOfScript(File("run", "#!/bin/bash\necho\n")), ScriptKind::kShell);
  EXPECT_EQ(KindOfScript(File("train", "#!/usr/bin/env python3\n")), ScriptKind::kPython);
  EXPECT_EQ(KindOfScript(File("perl", "#!/usr/bin/perl\n")), ScriptKind::kProgram);
  EXPECT_EQ(KindOfScript(File("binary", std::string("\x7f"
                                                    "ELF\x02",
                                                    5))),
            ScriptKind::kProgram);
}

TEST_F(ScriptFileTest, JobFilesAndScriptsForSbatchAreNone) {
  EXPECT_EQ(KindOfScript(File("job.yml", "command: echo\n")), ScriptKind::kNone);
  EXPECT_EQ(KindOfScript(File("batch.sh", "#!/bin/sh\n#SBATCH -N2\necho\n")), ScriptKind::kNone);
  EXPECT_EQ(KindOfScript(folder_.path() / "missing.py"), ScriptKind::kNone);
  EXPECT_EQ(KindOfScript(folder_.path()), ScriptKind::kNone);
}

TEST_F(ScriptFileTest, TheCommandStartsItFromTheFolder) {
  EXPECT_EQ(*CommandOf("/a/train.py", "/a", ScriptKind::kPython), "python3 train.py");
  EXPECT_EQ(*CommandOf("/a/b/train.py", "/a", ScriptKind::kPython), "python3 b/train.py");
  EXPECT_EQ(*CommandOf("/a/my run.sh", "/a", ScriptKind::kShell), "bash 'my run.sh'");
  EXPECT_EQ(*CommandOf("/a/-x.py", "/a", ScriptKind::kPython), "python3 ./-x.py");
  const auto program = File("train", "", 0755), other = File("no", "", 0644);
  EXPECT_EQ(*CommandOf(program, folder_.path(), ScriptKind::kProgram), "./train");
  EXPECT_FALSE(CommandOf(other, folder_.path(), ScriptKind::kProgram).ok());
}

TEST_F(ScriptFileTest, WhatAStringOrACommentSaysIsNoImport) {
  for (const char* text : {
           R"py("""Without torch:
import torch
"""
)py",
           R"py('''
from torch import nn
'''
)py",
           R"py(x = """\"""
import torch
"""
)py",
           R"py(# """
x = '''
import torch
'''
)py"}) {
    EXPECT_EQ(GuessDistribution(text).distribution, "") << text;
  }
  for (const char* text : {R"py("""doc""")py", R"py(x = 'it\'s')py", "# it's", "x = '#'",
                           R"py(x = "'''")py", "x = ''"}) {
    EXPECT_EQ(GuessDistribution(absl::StrCat(text, "\nimport torch\n")).distribution, "pytorch")
        << text;
  }
}

TEST_F(ScriptFileTest, TheFrameworkIsWhatItImports) {
  EXPECT_EQ(GuessDistribution("import os, torch.nn as nn\n").distribution, "pytorch");
  EXPECT_EQ(GuessDistribution("def f():\n  from torch import nn\n").package, "torch");
  EXPECT_EQ(GuessDistribution("import torch\nimport horovod.torch as hvd\n").distribution, "mpi");
  EXPECT_EQ(GuessDistribution("import tensorflow as tf\n").distribution, "tensorflow");
  EXPECT_EQ(GuessDistribution("import torch, ray\n").distribution, "ray");
  EXPECT_EQ(GuessDistribution("import torchless\n# import torch\nx = 'import ray'\n").package, "");
}

TEST_F(ScriptFileTest, AWordIsQuotedWhereAShellWouldChangeIt) {
  EXPECT_EQ(ShellWord("--lr=0.1"), "--lr=0.1");
  EXPECT_EQ(ShellWord("a b"), "'a b'");
  EXPECT_EQ(ShellWord("$HOME"), "'$HOME'");
  EXPECT_EQ(ShellWord(""), "''");
}

}  // namespace
}  // namespace tutti::client
