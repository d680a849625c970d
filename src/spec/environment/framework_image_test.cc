#include "spec/environment/framework_image.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace tutti::spec {
namespace {

class FrameworkImage : public ::testing::Test {
 protected:
  EnvironmentRule Of(const std::string& image) {
    const EnvironmentRule* matched = Site::FindRule(site_.images, image);
    EXPECT_NE(matched, nullptr) << image;
    return RuleOfFrameworkImage(image, *matched, site_.environments);
  }
  // "torch==1.9.1" and how that differs.
  std::string Says(const std::string& image) { return Said(Of(image)); }
  std::string SaysOfName(const std::string& name) {
    const EnvironmentRule* matched = Site::FindRule(site_.environments, name);
    EXPECT_NE(matched, nullptr) << name;
    return Said(RuleOfFrameworkName(name, *matched, site_.environments));
  }
  static std::string Said(const EnvironmentRule& rule) {
    return absl::StrCat(rule.packages.front(), rule.differs.empty() ? "" : "; ", rule.differs);
  }

  Site site_ = BuiltInSite();
};

TEST_F(FrameworkImage, ATagThatTheTablePinsIsThatLine) {
  EXPECT_EQ(Says("pytorch/pytorch:1.13.1-cuda11.6-cudnn8-runtime"), "torch==1.13.1");
  EXPECT_EQ(Of("pytorch/pytorch:1.13.1-cuda11.6-cudnn8-runtime").python, "3.8");
  EXPECT_EQ(Says("pytorch/pytorch:2.2.1-cuda12.1-cudnn8-devel"), "torch==2.2.1");
  EXPECT_EQ(Says("tensorflow/tensorflow:2.12.0"), "tensorflow-cpu~=2.12.0");
  EXPECT_EQ(Says("tensorflow/tensorflow:2.12.1-jupyter"), "tensorflow-cpu~=2.12.0");
  EXPECT_EQ(Says("tensorflow/tensorflow:2.16.2-gpu"), "tensorflow[and-cuda]==2.16.2");
}

TEST_F(FrameworkImage, AnotherTagIsTheNearestLineAndSaysSo) {
  EXPECT_EQ(Says("pytorch/pytorch:1.9.0-cuda10.2-cudnn7-runtime"),
            "torch==1.9.1; torch==1.9.1 in place of 1.9.0");
  EXPECT_EQ(Says("pytorch/pytorch:1.4-cuda10.1-cudnn7-runtime"),
            "torch==1.7.1; torch==1.7.1 in place of 1.4");
  EXPECT_EQ(Says("pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime"),
            "torch==2.7.1; torch==2.7.1 in place of 2.6.0");
  EXPECT_EQ(Says("tensorflow/tensorflow:2.4.0-gpu"),
            "tensorflow-cpu~=2.7.0; tensorflow-cpu~=2.7.0 in place of 2.4.0, without GPUs");
  EXPECT_EQ(Says("tensorflow/tensorflow:2.12.0-gpu"), "tensorflow-cpu~=2.12.0; without GPUs");
  EXPECT_EQ(Says("tensorflow/tensorflow:2.11.0"),
            "tensorflow-cpu~=2.11.1; tensorflow-cpu~=2.11.1 in place of 2.11.0");
}

TEST_F(FrameworkImage, ATagWithoutALineOfItsMajorOrOfANewerMinorIsTheNewest) {
  for (const char* image :
       {"pytorch/pytorch", "pytorch/pytorch:latest", "pytorch/pytorch:2.99.0-cuda14-runtime",
        "pytorch/pytorch:0.4.1-cuda9-cudnn7-runtime", "pytorch/pytorch:99999999999.1",
        "nvcr.io/nvidia/pytorch:23.10-py3"}) {
    EXPECT_EQ(Says(image), "torch") << image;
  }
  EXPECT_EQ(Says("tensorflow/tensorflow:1.15.5"), "tensorflow-cpu");
  EXPECT_EQ(Says("tensorflow/tensorflow:latest-gpu"), "tensorflow-cpu; without GPUs");
}

TEST_F(FrameworkImage, ANameOfAnotherVersionIsTheNearestLineAndSaysSo) {
  EXPECT_EQ(SaysOfName("tensorflow-2.4-ubuntu18.04-py37-cuda11-gpu"),
            "tensorflow-cpu~=2.7.0; tensorflow-cpu~=2.7.0 in place of 2.4, Python 3.8 in place of "
            "3.7, without GPUs, whose CUDA 11 is not on PyPI for it");
  EXPECT_EQ(SaysOfName("pytorch-1.6-ubuntu18.04-py36-cpu"),
            "torch==1.7.1; torch==1.7.1 in place of 1.6, Python 3.8 in place of 3.6");
  EXPECT_EQ(SaysOfName("sklearn-1.2"), "scikit-learn~=1.1.0; scikit-learn~=1.1.0 in place of 1.2");
  EXPECT_EQ(SaysOfName("sklearn-1.2-ubuntu20.04-py38-cpu"),
            "scikit-learn~=1.1.0; scikit-learn~=1.1.0 in place of 1.2")
      << "the line with its Python";
  EXPECT_EQ(SaysOfName("acpt-pytorch-1.10-cuda11"),
            "torch==1.11.0; torch==1.11.0 in place of 1.10, DeepSpeed 0.9 in place of 0.8; its and "
            "ORTModule's kernels are not built ahead, which takes nvcc on nodes with GPUs")
      << "its own family comes first";
  EXPECT_EQ(
      SaysOfName("pytorch-1.12-cuda11"),
      "torch==1.12.1; DeepSpeed 0.9 in place of 0.8; its and ORTModule's kernels are not built "
      "ahead, which takes nvcc on nodes with GPUs");
  EXPECT_EQ(SaysOfName("lightgbm-3.1-py38"), "lightgbm~=3.2.1; lightgbm~=3.2.1 in place of 3.1");
}

TEST_F(FrameworkImage, ANameWithoutALineOfItsMajorOrOfANewerMinorStaysAsItIs) {
  for (const auto& [name, says] :
       {std::pair("sklearn-1.99", "scikit-learn"), std::pair("pytorch-3.0", "torch"),
        std::pair("tensorflow-1.15-py37", "tensorflow-cpu"), std::pair("xgboost-1.5", "xgboost"),
        std::pair("tensorflow-2.11-cuda11",
                  "tensorflow-cpu~=2.11.1; without GPUs, whose CUDA 11 is "
                  "not on PyPI for it")}) {
    EXPECT_EQ(SaysOfName(name), says);
  }
  ASSERT_TRUE(
      ReadSiteText("environments: {pytorch-1.6: {packages: [torch]}}\n", "site.yml", "/home", site_)
          .ok());
  EXPECT_EQ(SaysOfName("pytorch-1.6"), "torch") << "the site's own";
}

TEST_F(FrameworkImage, WhatTheSiteSaysOfAnImageStays) {
  ASSERT_TRUE(ReadSiteText("images: {'pytorch/pytorch:*': {packages: [torch==1.9.0]}}\n"
                           "environments: {our-1.13: {packages: [torch==1.13.1, our]}}\n",
                           "site.yml", "/home", site_)
                  .ok());
  EXPECT_EQ(Says("pytorch/pytorch:1.13.1"), "torch==1.9.0");
}

}  // namespace
}  // namespace tutti::spec
