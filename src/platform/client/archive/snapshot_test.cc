#include "platform/client/archive/snapshot.h"

#include <archive.h>
#include <archive_entry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::client {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class SnapshotTest : public testing::Test {
 protected:
  fs::path Code(const std::string& name) { return folder_.path() / name; }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(base::MakeDirectories((folder_.path() / name).parent_path()).ok());
    ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / name, text).ok());
  }
  fs::path Archive(const std::string& name = "a") { return out_.path() / name; }

  // "name" of folders, "name=content" of files, "name->target" of links, in the archive's order.
  std::vector<std::string> List(const fs::path& file) {
    archive* reader = archive_read_new();
    archive_read_support_filter_zstd(reader);
    archive_read_support_format_tar(reader);
    EXPECT_EQ(archive_read_open_filename(reader, file.c_str(), 1 << 16), ARCHIVE_OK);
    std::vector<std::string> entries;
    archive_entry* entry;
    while (archive_read_next_header(reader, &entry) == ARCHIVE_OK) {
      std::string text = archive_entry_pathname(entry);
      if (archive_entry_filetype(entry) == AE_IFREG) {
        std::string content(static_cast<size_t>(archive_entry_size(entry)), '\0');
        archive_read_data(reader, content.data(), content.size());
        absl::StrAppend(&text, "=", content);
      } else if (archive_entry_filetype(entry) == AE_IFLNK) {
        absl::StrAppend(&text, "->", archive_entry_symlink(entry));
      }
      entries.push_back(text);
    }
    archive_read_free(reader);
    return entries;
  }

  base::TemporaryDirectory folder_, out_;
};

TEST_F(SnapshotTest, EqualContentHasAnEqualHash) {
  Write("b/train.py", "print(1)");
  Write("a.txt", "x");
  const auto first = PackCode(folder_.path(), Archive("1"));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->files, 2);
  EXPECT_EQ(first->content_bytes, 9u);

  base::TemporaryDirectory copy;
  ASSERT_TRUE(base::WriteFileAtomic(copy.path() / "a.txt", "x", 0600).ok());
  ASSERT_TRUE(base::MakeDirectories(copy.path() / "b").ok());
  ASSERT_TRUE(base::WriteFileAtomic(copy.path() / "b/train.py", "print(1)").ok());
  EXPECT_EQ(PackCode(copy.path(), Archive("2"))->hash, first->hash);

  Write("a.txt", "y");
  EXPECT_NE(PackCode(folder_.path(), Archive("3"))->hash, first->hash);
}

TEST_F(SnapshotTest, HoldsTheFolderSorted) {
  Write("z", "1");
  Write("b/c", "2");
  fs::create_symlink("../z", Code("b/link"));
  ASSERT_TRUE(PackCode(folder_.path(), Archive()).ok());
  const auto entries = List(Archive());
  EXPECT_THAT(entries, ElementsAre("b/", "b/c=2", "b/link->../z", "z=1"));
}

TEST_F(SnapshotTest, LeavesOutWhatTheIgnoreFileNames) {
  Write(".gitignore", "*.txt\n");
  Write("a.log", "");
  Write("a.txt", "");
  Write(".git/config", "");
  Write("data/big", "");
  ASSERT_TRUE(PackCode(folder_.path(), Archive()).ok());
  EXPECT_THAT(List(Archive()), ElementsAre(".gitignore=*.txt\n", "a.log=", "data/", "data/big="));
  // .amlignore stands instead of .gitignore, not beside it.
  Write(".amlignore", "data/\n.*\n*.log\n");
  ASSERT_TRUE(PackCode(folder_.path(), Archive()).ok());
  EXPECT_THAT(List(Archive()), ElementsAre("a.txt="));
}

// `git ls-files --others --exclude-standard` lists them so in src.
TEST_F(SnapshotTest, LeavesOutWhatGitIgnoresFromTheRepositorysRootOn) {
  Write(".git/info/exclude", "of-me\n");
  Write(".gitignore", "data/\n/src/*.pt\n*.log\n");
  Write("src/.gitignore", "!keep.log\n");
  Write("src/deep/.gitignore", "/data2\n!data/\n");
  for (const char* name : {"src/data/a", "src/best.pt", "src/a.log", "src/keep.log", "src/of-me",
                           "src/deep/best.pt", "src/deep/data/b", "src/deep/data2/c",
                           "src/deep/er/data2", "src/train.py", "src/deep/__pycache__/x.pyc"}) {
    Write(name, "x");
  }
  const auto packed = PackCode(Code("src"), Archive());
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_THAT(List(Archive()),
              ElementsAre(".gitignore=!keep.log\n", "deep/", "deep/.gitignore=/data2\n!data/\n",
                          "deep/best.pt=x", "deep/data/", "deep/data/b=x", "deep/er/",
                          "deep/er/data2=x", "keep.log=x", "train.py=x"));
  std::vector<std::string> told;
  for (const ExcludedPath& each : packed->left_out) told.push_back(each.by + " " + each.name);
  EXPECT_THAT(told,
              ElementsAre("../.gitignore a.log", "../.gitignore best.pt", "../.gitignore data/",
                          "deep/.gitignore deep/data2/", "../.git/info/exclude of-me"));
}

TEST_F(SnapshotTest, AFolderThatItsRepositoryIgnoresGoesByTheFilesInItAlone) {
  Write(".git/HEAD", "");
  Write(".gitignore", "*\n");
  Write("out/code/.gitignore", "data\n");
  Write("out/code/data", "x");
  Write("out/code/train.py", "x");
  Write("out/code/module/.git", "gitdir: elsewhere");
  Write("out/code/module/data", "git knows nothing of what is around it");
  ASSERT_TRUE(PackCode(Code("out/code"), Archive()).ok());
  EXPECT_THAT(List(Archive()),
              ElementsAre(".gitignore=data\n", "module/",
                          "module/data=git knows nothing of what is around it", "train.py=x"));
}

TEST_F(SnapshotTest, CountsWhatIsLeftOutUpToABound) {
  Write(".amlignore", "data/\nmany/\nhollow/\n");
  Write("data/a", "12345");
  Write("data/b/c", "67");
  fs::create_directories(Code("hollow"));
  auto packed = PackCode(folder_.path(), Archive());
  ASSERT_TRUE(packed.ok()) << packed.status();
  ASSERT_EQ(packed->left_out.size(), 2u);
  EXPECT_EQ(packed->left_out[0].name, "data/");
  EXPECT_EQ(packed->left_out[0].files, 2);
  EXPECT_EQ(packed->left_out[0].bytes, 7u);
  fs::create_directories(Code("many"));
  Write("many/0", "");
  for (int i = 1; i <= 10'000; ++i) {
    fs::create_hard_link(Code("many/0"), Code(absl::StrCat("many/", i)));
  }
  packed = PackCode(folder_.path(), Archive());
  EXPECT_EQ(packed->left_out[0].name, "many/");
  EXPECT_TRUE(packed->left_out[0].has_more);
  EXPECT_EQ(packed->left_out[0].files, 10'000);
  EXPECT_EQ(packed->left_out[1].name, "data/");
}

TEST_F(SnapshotTest, LeavesOutPythonEnvironments) {
  Write("code/train.py", "x");
  Write("code/.venv/pyvenv.cfg", "home = /usr/bin");
  fs::create_directories(Code("code/.venv/bin"));
  fs::create_symlink("/usr/bin/python3", Code("code/.venv/bin/python3"));
  Write("code/deep/conda/conda-meta/history", "");
  ASSERT_TRUE(PackCode(Code("code"), Archive()).ok());
  EXPECT_THAT(List(Archive()), ElementsAre("deep/", "train.py=x"));
}

TEST_F(SnapshotTest, TellsOfFilesThatOftenHoldSecrets) {
  Write("code/.env", "KEY=1");
  Write("code/app/.env", "KEY=2");
  const auto all = PackCode(Code("code"), Archive());
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(all->secret_files, ElementsAre(".env", "app/.env"));
  Write("code/.amlignore", ".env");
  EXPECT_TRUE(PackCode(Code("code"), Archive("b"))->secret_files.empty());
}

TEST_F(SnapshotTest, PrivateKeysAreAmongThem) {
  for (const char* name :
       {".ssh/id_rsa", ".ssh/id_rsa.pub", ".netrc", ".aws/credentials", "key.pem", "train.py"}) {
    Write(absl::StrCat("code/", name), "x");
  }
  const auto all = PackCode(Code("code"), Archive());
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(all->secret_files, ElementsAre(".aws/credentials", ".netrc", ".ssh/id_rsa"));
}

TEST_F(SnapshotTest, TheWholeMachineIsNoCode) {
  const absl::Status status = CheckCode("/");
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "code: / is all of this machine: name the folder that is meant");
}

TEST_F(SnapshotTest, AHomeIsSentWhereNoIgnoreFileSaysWhatStays) {
  const char* const before = std::getenv("HOME");
  const std::string home = before == nullptr ? "" : before;
  Write("code/train.py", "x");
  ::setenv("HOME", Code("code").c_str(), 1);
  EXPECT_TRUE(IsUnfilteredHome(Code("code")));
  Write("code/.amlignore", ".ssh/");
  EXPECT_FALSE(IsUnfilteredHome(Code("code")));
  ::setenv("HOME", home.c_str(), 1);
}

TEST_F(SnapshotTest, KeepsNamesInEveryLanguageByteByByte) {
  Write("ünï cödé/日本", "1");
  Write("latin-\xe9", "2");
  fs::create_symlink("ünï cödé/日本", Code("link"));
  const auto packed = PackCode(folder_.path(), Archive());
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_THAT(List(Archive()),
              ElementsAre("latin-\xe9=2", "link->ünï cödé/日本", "ünï cödé/", "ünï cödé/日本=1"));
}

TEST_F(SnapshotTest, ASingleFileIsAnArchiveOfOne) {
  Write("train.py", "p");
  ASSERT_TRUE(PackCode(Code("train.py"), Archive()).ok());
  EXPECT_THAT(List(Archive()), ElementsAre("train.py=p"));
}

TEST_F(SnapshotTest, IncludesStandBesideTheCode) {
  Write("src/train.py", "t");
  Write("shared/lib/a.py", "a");
  Write("shared/lib/old.py", "o");
  Write("shared/.amlignore", "old.py");
  Write("util.py", "u");
  const std::vector<fs::path> includes = {Code("util.py"), Code("shared")};
  ASSERT_TRUE(PackCode(Code("src"), Archive(), includes).ok());
  EXPECT_THAT(List(Archive()), ElementsAre("shared/", "shared/.amlignore=old.py", "shared/lib/",
                                           "shared/lib/a.py=a", "train.py=t", "util.py=u"));
  ASSERT_TRUE(PackCode("", Archive(), {Code("util.py")}).ok());
  EXPECT_THAT(List(Archive()), ElementsAre("util.py=u"));

  Write("src/util.py", "mine");
  EXPECT_THAT(std::string(PackCode(Code("src"), Archive(), includes).status().message()),
              HasSubstr("would both be \"util.py\" beside the code"));
  EXPECT_THAT(std::string(PackCode("", Archive(), {Code("gone")}).status().message()),
              HasSubstr("gone does not exist"));
}

TEST_F(SnapshotTest, RefusesALinkThatLeavesTheFolder) {
  for (const char* target : {"/etc/passwd", "../outside", "a/../../outside"}) {
    fs::remove(Code("link"));
    fs::create_symlink(target, Code("link"));
    const absl::Status status = PackCode(folder_.path(), Archive()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << target;
    EXPECT_THAT(std::string(status.message()), HasSubstr("link"));
  }
}

TEST_F(SnapshotTest, RefusesWhatIsNoFile) {
  ASSERT_EQ(::mkfifo(Code("pipe").c_str(), 0600), 0);
  EXPECT_THAT(std::string(PackCode(folder_.path(), Archive()).status().message()),
              HasSubstr("pipe"));
}

TEST_F(SnapshotTest, SaysWhatIsMissing) {
  EXPECT_EQ(PackCode(Code("nothing"), Archive()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(PackCode(folder_.path(), "/no/such/folder/a").ok());
}

}  // namespace
}  // namespace tutti::client
