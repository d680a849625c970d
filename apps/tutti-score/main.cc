// tutti-score: what trained models say of images, in files or by HTTP. Also `tutti score`.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "base/log.h"
#include "runtime/data/decode/image_codec.h"
#include "runtime/scoring/report.h"
#include "runtime/scoring/scorer.h"
#include "runtime/scoring/trained_model.h"
#include "serve_command.h"

namespace {

constexpr int kSomeFilesFailed = 1;
constexpr int kCouldNotStart = 2;

struct Options {
  std::vector<std::string> files;
  std::string model;
  int top = 0;
  bool mirrored = false;
  std::string precision = "auto";
  std::string output = "table";
  std::string masks;
};

void Describe(CLI::App& app, Options& options) {
  app.add_option(
         "FILE", options.files,
         absl::StrCat("Images (", tutti::data::ImageKinds(), ") of any size, or folders of them"))
      ->required()
      ->type_name("");
  app.add_option("-m,--model", options.model,
                 "Folder of the model, as tutti-train wrote it, or with TorchScript and model.yml")
      ->required()
      ->type_name("DIR");
  app.add_option("-k,--top", options.top,
                 "Show the N most probable classes, or boxes, of each image (default: 5 classes, "
                 "all boxes)")
      ->check(CLI::Range(1, 1'000'000).description(""))
      ->type_name("N");
  app.add_flag("--mirrored", options.mirrored,
               "Score the mean output for each image and its mirror image, as "
               "tutti-train --evaluate-mirrored does: twice the work");
  app.add_option("--precision", options.precision,
                 "fp32, bf16 or auto: what is fastest on this processor")
      ->check(CLI::IsMember({"auto", "fp32", "bf16"}).description(""))
      ->capture_default_str()
      ->type_name("NAME");
  app.add_option("-o,--output", options.output, "table, json or csv")
      ->check(CLI::IsMember({"table", "json", "csv"}).description(""))
      ->capture_default_str()
      ->type_name("FORMAT");
  app.add_option("--masks", options.masks,
                 "Write the masks of segmentation there, as PNG: a grey level is a class")
      ->type_name("DIR");
  app.set_version_flag("--version", "tutti-score " TUTTI_VERSION);
  app.footer(R"(Examples:
  tutti-score cat.jpg --model outputs/model
  tutti-score photos --model outputs/model --top 1 -o csv > classes.csv
  tutti-score serve outputs/model        (tutti-score serve --help)

An image of another size than the model's input is resized and cropped at its
centre, or stretched, as the model's evaluation did. Boxes are in pixels of the
image; a mask is as large as the model's input.

Exit code: 0 all images were scored; 1 some could not be, each is named on
standard error; 2 wrong usage, or no usable model.)");
}

std::string Format(const Options& options, const tutti::scoring::Head& head,
                   const std::vector<tutti::scoring::FileScore>& scores) {
  if (options.output == "json") return tutti::scoring::FormatJson(head, scores, options.masks);
  if (options.output == "csv") return tutti::scoring::FormatCsv(head, scores);
  return tutti::scoring::FormatTable(head, scores);
}

absl::Status WriteMasks(const std::string& masks,
                        const std::vector<tutti::scoring::FileScore>& scores) {
  if (masks.empty()) return absl::OkStatus();
  absl::Status status = tutti::base::MakeDirectories(masks);
  for (const auto& score : scores) {
    if (score.mask.empty()) continue;
    status.Update(
        tutti::base::WriteFileAtomic(tutti::scoring::MaskFile(masks, score.file), score.mask));
  }
  return status;
}

void Complain(const absl::Status& status) {
  std::fprintf(stderr, "tutti-score: %s\n", std::string(status.message()).c_str());
}

int Score(const Options& options) {
  const auto found = tutti::scoring::FindFilesToScore(options.files);
  if (!found.ok()) {
    Complain(found.status());
    return kCouldNotStart;
  }
  for (const std::string& remark : found->remarks) {
    std::fprintf(stderr, "%s\n", remark.c_str());
  }
  const auto model = tutti::scoring::TrainedModel::Open(options.model, options.precision);
  if (!model.ok()) {
    Complain(model.status());
    return kCouldNotStart;
  }
  const std::string& why = (*model)->facts().precision_why;
  if (!why.empty()) std::fprintf(stderr, "%s\n", why.c_str());
  const auto scores =
      tutti::scoring::ScoreFiles(**model, found->files, options.top, options.mirrored);
  if (const absl::Status status = WriteMasks(options.masks, scores); !status.ok()) {
    Complain(status);
    return kCouldNotStart;
  }
  const std::string text = Format(options, (*model)->head(), scores);
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (std::fflush(stdout) != 0) {
    std::perror("tutti-score: standard output");
    return kCouldNotStart;
  }
  int code = 0;
  for (const auto& score : scores) {
    if (score.status.ok()) continue;
    Complain(score.status);
    code = kSomeFilesFailed;
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  tutti::base::StartLogging();
  if (argc > 1 && absl::string_view(argv[1]) == "serve") {
    return tutti::ServeCommand(argc - 1, argv + 1);
  }
  CLI::App app("Tells what images show, by a trained model.", "tutti-score");
  Options options;
  Describe(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kCouldNotStart;
  }
  return Score(options);
}
