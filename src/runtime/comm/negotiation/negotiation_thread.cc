// The engine's thread that talks: it says what became ready, and on rank 0 decides.
#include <algorithm>
#include <iterator>

#include "runtime/comm/negotiation/negotiation_engine.h"
#include "runtime/comm/rendezvous/wire/control_message.h"

namespace tutti::comm {
namespace {

// The second half of `list`, taken out of it.
template <typename T>
std::vector<T> SecondHalf(std::vector<T>& list) {
  const auto middle = list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2);
  std::vector<T> second(std::make_move_iterator(middle), std::make_move_iterator(list.end()));
  list.erase(middle, list.end());
  return second;
}

}  // namespace

void Engine::RunThread() {
  while (true) {
    const absl::Duration wake = NextWake();
    Report own;
    std::vector<std::pair<int, Report>> others;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      const auto ready = [this] { return awake_; };
      if (wake == absl::InfiniteDuration()) {
        changed_.wait(lock, ready);
      } else {
        changed_.wait_until(lock, base::Deadline::After(wake - Now()).time_point(), ready);
      }
      awake_ = false;
      if (stopping_) return;
      own.executed = outbox_.executed;
      std::swap(own, outbox_);
      outbox_.executed = own.executed;
      others.swap(inbox_);
    }
    if (rank_ == 0) {
      Lead(own, std::move(others));
    } else {
      PostReport(std::move(own));
      WatchRankZero();
    }
  }
}

absl::Duration Engine::NextWake() {
  if (coordinator_ != nullptr) return coordinator_->NextTick();
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool waits = !submissions_.empty() || executor_->busy();
  return waits && end_.ok() ? Now() + watch_.period() : absl::InfiniteDuration();
}

// As several payloads where one does not hold it: the order is kept, and the last says what follows
// from all.
void Engine::PostReport(Report report) {
  const bool is_news = report.leaves || !report.announcements.empty() || report.executed != told_;
  if (!is_news) return;
  told_ = report.executed;
  std::string text = Write(report);
  if (text.size() <= kLongestPayload || report.announcements.size() < 2) {
    return control_->Post(0, std::move(text));
  }
  Report second = report;
  second.announcements = SecondHalf(report.announcements);
  report.leaves = false;
  PostReport(std::move(report));
  PostReport(std::move(second));
}

void Engine::PostOrders(int to, Orders orders) {
  std::string text = Write(orders);
  if (text.size() <= kLongestPayload || orders.responses.size() < 2) {
    return control_->Post(to, std::move(text));
  }
  Orders first;
  std::vector<Response> second = SecondHalf(orders.responses);
  first.responses.swap(orders.responses);
  orders.responses.swap(second);
  PostOrders(to, std::move(first));
  PostOrders(to, std::move(orders));
}

void Engine::Lead(const Report& own, std::vector<std::pair<int, Report>> others) {
  const absl::Duration now = Now();
  coordinator_->OnReport(0, own, now);
  for (const auto& [from, report] : others) coordinator_->OnReport(from, report, now);
  coordinator_->OnTick(
      now, coordinator_->NextTick() <= now ? Silences() : std::vector<absl::Duration>());
  if (tuner_.has_value()) Autotune();
  Orders mine;
  for (auto& [to, orders] : coordinator_->TakeOutgoing()) {
    if (to == 0) {
      mine = std::move(orders);
    } else {
      PostOrders(to, std::move(orders));
    }
  }
  Follow(std::move(mine));
}

std::vector<absl::Duration> Engine::Silences() {
  std::vector<absl::Duration> silences(size_);
  for (int rank = 1; rank < size_ && control_ != nullptr; ++rank) {
    silences[rank] = control_->SilenceOf(rank);
  }
  return silences;
}

void Engine::Autotune() {
  const auto tuning = tuner_->OnProgress(coordinator_->executed_bytes(), Now());
  if (tuner_log_.is_open()) tuner_log_ << tuner_->TakeLog() << std::flush;
  if (!tuning.has_value()) return;
  coordinator_->Tune(tuning->fusion_bytes, tuning->cycle_time);
  const std::lock_guard<std::mutex> lock(mutex_);
  tuning_ = *tuning;
}

void Engine::WatchRankZero() {
  const absl::Duration silence[] = {control_->SilenceOf(0)};
  std::vector<Stall> stalls;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Waiting> waiting = submissions_.WhatWaits({0});
    const auto running = executor_->Running();
    if (running.has_value()) {
      waiting.push_back({&running->first, kWorldSet, running->second, nullptr, {0}});
    }
    stalls = watch_.Inspect(waiting, Now(), silence);
  }
  ReportStalls(std::move(stalls));
}

}  // namespace tutti::comm
