#include "spec/command/first_program.h"

#include <gtest/gtest.h>

namespace tutti::spec {
namespace {

TEST(FirstProgram, IsNamedWhereTheCommandFailsWithoutIt) {
  for (const char* command :
       {"pyhton train.py", "  pyhton train.py \n", "pyhton", "A=1 B='x y' pyhton train.py",
        "cd src && pyhton train.py", "set -e\n# the job's own\n\necho 'a; b'; pyhton train.py",
        "export LR=0.1 PYTHONPATH=src; pyhton train.py && echo done", "pyhton \\\n  train.py",
        "pyhton train.py 2>&1", "pyhton train.py &> log", "pyhton -c \"import x; x.f('|')\"",
        "pyhton train.py --data ${{inputs.data}} --out \"${{ outputs.o }}\"",
        "echo ${{inputs.a}} && pyhton train.py"}) {
    const FirstProgram program = FirstProgramOf(command);
    EXPECT_EQ(program.name, "pyhton") << command;
    EXPECT_TRUE(program.decides) << command;
  }
}

TEST(FirstProgram, DecidesNothingWhereTheCommandMayEndWellWithoutIt) {
  for (const char* command :
       {"pyhton a.py || python a.py", "pyhton a.py; python b.py", "pyhton a.py\npython b.py",
        "pyhton a.py | tee log", "pyhton a.py & wait", "pyhton a.py && x || true",
        "pyhton a.py $(make it)", "pyhton a.py # or: x", "pyhton <words"}) {
    const FirstProgram program = FirstProgramOf(command);
    EXPECT_EQ(program.name, "pyhton") << command;
    EXPECT_FALSE(program.decides) << command;
  }
}

TEST(FirstProgram, IsNoneWhereOnlyAShellCouldTell) {
  for (const char* command : {"",
                              "#",
                              "A=1",
                              "./pyhton train.py",
                              "bin/pyhton",
                              "/opt/pyhton",
                              "$PYTHON train.py",
                              "${{inputs.program}} x",
                              "\"pyhton\" x",
                              "~/pyhton",
                              "if pyhton; then x; fi",
                              "for i in 1; do pyhton; done",
                              "! pyhton",
                              "time pyhton",
                              "exec pyhton",
                              "[ -e x ] && pyhton",
                              "source env.sh && pyhton",
                              ". env.sh; pyhton",
                              "f() { true; }; f",
                              "f () { true; }; f",
                              "function f { true; }; f",
                              "(pyhton)",
                              "{ pyhton; }",
                              "PATH=/x pyhton",
                              "export PATH=/x; pyhton",
                              "export \"PATH=/x:$PATH\" && pyhton",
                              "PATH+=:/x; pyhton",
                              "cd x || pyhton",
                              "echo x | pyhton",
                              "echo x & pyhton",
                              "echo `pyhton`; pyhton",
                              "export A=$(f); pyhton",
                              "echo \"$(f \"a; b c\")\"",
                              "echo # don't\nx 'y; pyhton'",
                              "echo $'it\\'s; pyhton'",
                              "export A=${B:-c; pyhton e}",
                              "cat <<X\npyhton\nX",
                              ">log pyhton"}) {
    const std::string name = FirstProgramOf(command).name;
    EXPECT_NE(name, "pyhton") << command;
    EXPECT_TRUE(name.empty() || name == "cat") << command << ": " << name;
  }
}

TEST(PlainWords, AreThoseOfOneProgramThatAShellLeavesAsTheyAre) {
  EXPECT_EQ(PlainWordsOf(" python train.py --lr=0.1 \\\n  --data a,b:c@d%1+2\n"),
            (std::vector<std::string>{"python", "train.py", "--lr=0.1", "--data", "a,b:c@d%1+2"}));
  EXPECT_EQ(PlainWordsOf("/usr/bin/env"), std::vector<std::string>{"/usr/bin/env"});
}

TEST(PlainWords, AreNoneWhereAShellHasWork) {
  for (const char* command : {"",
                              " ",
                              "python $FILE",
                              "python 'a b'",
                              "python \"a\"",
                              "python *.py",
                              "python a?.py",
                              "python ~/a.py",
                              "python a; python b",
                              "python a && python b",
                              "python a | cat",
                              "python a >log",
                              "python a &",
                              "python {a,b}",
                              "(python a)",
                              "LR=1 python a",
                              "cd src",
                              "exec python a",
                              "time python a",
                              ". ./env",
                              "source env",
                              "!python",
                              "[ -e a ]",
                              "python a # note",
                              "python a\npython b",
                              "python a\\b",
                              "a/b=c python",
                              "python [a]"}) {
    EXPECT_TRUE(PlainWordsOf(command).empty()) << command;
  }
}

}  // namespace
}  // namespace tutti::spec
