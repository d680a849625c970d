#include "platform/container/kept_images.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "base/machine/machine.h"
#include "platform/container/make_image.h"

namespace tutti::container {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr char kName[] = "docker.io/library/python:3.11";

// Stands for podman: its storage is files "NAME" with an image's id, and "busy" says that a
// container has it. A pull brings what the file "registry" says.
constexpr char kPodmanWithStorage[] = R"sh(#!/bin/sh
here=${0%/*}
for last; do :; done
file=$here/storage/$(echo "$last" | tr / _)
case "$1 $2" in
  'image inspect')
    [ "$4" != '{{.Size}}' ] || { echo 1234; exit; }
    [ -e "$file" ] || { echo "Error: $last: image not known" >&2; exit 125; }
    case $4 in
      *RepoTags*) echo "$(cat "$file") $(cat "$here/tags" 2>/dev/null || echo 1)" ;;
      *) cat "$file" ;;
    esac ;;
  'pull --quiet')
    old=$(cat "$file" 2>/dev/null) && echo "$old" >"$here/storage/$old"
    cat "$here/registry" >"$file" ;;
  build*) for o; do case $o in --tag=*) echo built >"$here/storage/$(echo "${o#--tag=}" | tr / _)" ;; esac; done
    echo base >"$here/storage/a.example_base:1" ;;
  rmi*)
    [ ! -e "$here/busy" ] || { echo "Error: image used by 12: image is in use by a container" >&2; exit 2; }
    rm "$file" ;;
esac
)sh";

class KeptImagesTest : public ::testing::Test {
 protected:
  KeptImagesTest() {
    EXPECT_TRUE(base::MakeDirectories(bin_ / "storage").ok());
    EXPECT_TRUE(base::MakeDirectories(folder_).ok());
    Write(bin_ / "podman", kPodmanWithStorage, 0755);
    Write(bin_ / "registry", "one");
    ::setenv("PATH", absl::StrCat(bin_.string(), ":", path_).c_str(), 1);
  }
  ~KeptImagesTest() override { ::setenv("PATH", path_.c_str(), 1); }

  static void Write(const fs::path& file, const std::string& text, int mode = 0644) {
    ASSERT_TRUE(base::WriteFileAtomic(file, text, mode).ok());
  }
  // Returns where podman stores the image of that name.
  fs::path Stored(const std::string& name) const {
    return bin_ / "storage" / absl::StrReplaceAll(name, {{"/", "_"}});
  }
  void Make(const std::string& reference) {
    spec::Environment environment;
    environment.image.reference = reference;
    const auto made = MakeImage(environment, folder_, false);
    ASSERT_TRUE(made.ok()) << made.status();
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const KeptImage& image : ListImages(folder_)) names.push_back(image.name);
    return names;
  }
  absl::StatusOr<bool> Remove(const std::vector<KeptImage>& images) const {
    return RemoveImage(folder_, images, false);
  }
  KeptImage Only() const {
    const std::vector<KeptImage> all = ListImages(folder_);
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? KeptImage{} : all.front();
  }
  fs::path Record() const {
    return folder_ / "images" / base::HostName() / absl::StrCat(KeyOfImage(kName), ".json");
  }
  fs::path Mark() const {
    return Record().parent_path() / (".gone-" + Record().filename().native());
  }

  const std::string path_ = std::getenv("PATH");
  const base::TemporaryDirectory root_;
  const fs::path bin_ = root_.path() / "bin", folder_ = root_.path() / "environments";
};

TEST_F(KeptImagesTest, WhatIsPulledIsRecordedAndGoes) {
  Make("python:3.11");
  const KeptImage image = Only();
  EXPECT_EQ(image.name, kName);
  EXPECT_EQ(image.id, "one");
  EXPECT_EQ(image.bytes, 1234u);
  EXPECT_EQ(image.host, base::HostName());
  EXPECT_TRUE(*Remove({image}));
  EXPECT_FALSE(fs::exists(Stored(kName)));
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(KeptImagesTest, AnImageThatTheUserHadIsNotTuttis) {
  Write(Stored("a.example/b:1"), "users");
  Write(Stored("a.example/c:latest"), "users");
  Make("a.example/b:1");
  Make("a.example/c:latest");  // is asked for anew
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(KeptImagesTest, WhatTheUserHasPulledAnewIsNotTuttisAnyMore) {
  Make("python:3.11");
  Write(Stored(kName), "users");
  EXPECT_FALSE(*Remove({Only()}));
  EXPECT_TRUE(fs::exists(Stored(kName)));
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(KeptImagesTest, WhatLatestWasBeforeGoesUnlessTheUserGaveItAName) {
  Make("a.example/c");
  Write(bin_ / "registry", "two");
  Make("a.example/c");
  EXPECT_THAT(Names(), UnorderedElementsAre("a.example/c", "one"));
  for (const KeptImage& image : ListImages(folder_)) {
    if (image.name != "one") continue;
    EXPECT_FALSE(*Remove({image})) << "it has a name";
    Write(bin_ / "tags", "0");
    ASSERT_TRUE(RecordImage(folder_, image).ok());
  }
  for (const KeptImage& image : ListImages(folder_)) {
    if (image.name == "one") {
      EXPECT_TRUE(*Remove({image}));
    }
  }
  EXPECT_THAT(Names(), UnorderedElementsAre("a.example/c"));
}

TEST_F(KeptImagesTest, BuildsAreRecordedWithTheImagesThatTheyPull) {
  ASSERT_TRUE(base::MakeDirectories(root_.path() / "context").ok());
  Write(root_.path() / "context/Dockerfile", "FROM a.example/base:1\nRUN make\n");
  spec::Environment environment;
  environment.image = {"", (root_.path() / "context").string(), "Dockerfile", "job.yml:1", ""};
  ASSERT_TRUE(MakeImage(environment, folder_, false).ok());
  const std::string build = *NameOfBuild(environment.image);
  EXPECT_THAT(Names(), UnorderedElementsAre(build, "a.example/base:1"));
  // A kill between the build and its record leaves it like this.
  fs::remove_all(folder_ / "images");
  ASSERT_TRUE(MakeImage(environment, folder_, false).ok());
  EXPECT_THAT(Names(), UnorderedElementsAre(build));
}

TEST_F(KeptImagesTest, WhatHasBeenTakenMeanwhileOrIsMadeStays) {
  Make("python:3.11");
  KeptImage before = Only();
  before.last_use -= absl::Hours(1);
  EXPECT_FALSE(*Remove({before}));
  const auto lock = base::Open(ImageLock(folder_, before.key), O_RDWR);
  ASSERT_TRUE(lock.ok());
  ASSERT_EQ(::flock(lock->get(), LOCK_SH), 0);
  EXPECT_FALSE(*Remove({Only()}));
  EXPECT_FALSE(*MarkImage(folder_, Only()));
  EXPECT_TRUE(fs::exists(Stored(kName)));
}

TEST_F(KeptImagesTest, WhatAContainerHasStays) {
  Make("python:3.11");
  Write(bin_ / "busy", "");
  EXPECT_FALSE(*Remove({Only()}));
  EXPECT_THAT(Names(), UnorderedElementsAre(kName));
}

TEST_F(KeptImagesTest, ARecordWithoutItsImageIsDropped) {
  Make("python:3.11");
  fs::remove(Stored(kName));  // as a kill between the two leaves it
  EXPECT_FALSE(*Remove({Only()}));
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(KeptImagesTest, AMarkedImageIsRemovedByTheNextLauncherOnItsNode) {
  Make("python:3.11");
  ASSERT_TRUE(*MarkImage(folder_, Only()));
  EXPECT_THAT(Names(), IsEmpty());
  Write(bin_ / "busy", "");
  EXPECT_TRUE(RemoveMarkedImages(folder_).ok());
  EXPECT_TRUE(fs::exists(Mark())) << "a container has it, so it is tried again";
  fs::remove(bin_ / "busy");
  EXPECT_TRUE(RemoveMarkedImages(folder_).ok());
  EXPECT_FALSE(fs::exists(Stored(kName)) || fs::exists(Mark()));
}

TEST_F(KeptImagesTest, AMarkedImageThatAJobTakesStays) {
  Make("python:3.11");
  ASSERT_TRUE(*MarkImage(folder_, Only()));
  Make("python:3.11");
  EXPECT_THAT(Names(), UnorderedElementsAre(kName));
  EXPECT_TRUE(RemoveMarkedImages(folder_).ok());
  EXPECT_TRUE(fs::exists(Stored(kName)));
}

TEST_F(KeptImagesTest, WhatIsNoRecordIsLeftOut) {
  Make("python:3.11");
  for (const char* text : {"", "[]", "{\"name\": 7}"}) {
    Write(Record().parent_path() / "x.json", text);
    EXPECT_THAT(Names(), UnorderedElementsAre(kName)) << text;
  }
}

TEST_F(KeptImagesTest, SaysWhyAnImageCannotBeRemoved) {
  Make("python:3.11");
  Write(bin_ / "podman", "#!/bin/sh\necho 'Error: storage is away' >&2; exit 125\n", 0755);
  EXPECT_THAT(std::string(Remove({Only()}).status().message()), HasSubstr("storage is away"));
  EXPECT_THAT(Names(), UnorderedElementsAre(kName));
}

}  // namespace
}  // namespace tutti::container
