// OnEveryRanksLinks gives tests the links of each rank of a group, below its communicator.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/comm/collective/links.h"
#include "runtime/comm/group/group_test_support.h"
#include "runtime/comm/rendezvous/rendezvous.h"

namespace tutti::comm {

using WrapChannel = std::function<std::unique_ptr<Channel>(std::unique_ptr<Channel>)>;

// Runs `body` on a thread for every rank, with its links; `all`: every rank's options.
// `wrap`: puts each channel into another one.
inline void OnEveryRanksLinks(const std::vector<GroupOptions>& all,
                              const std::function<void(Links&)>& body, bool rdma = false,
                              const WrapChannel& wrap = {}) {
  std::vector<std::thread> threads;
  const int size = static_cast<int>(all.size());
  for (const GroupOptions& options : all) {
    threads.emplace_back([&body, &wrap, options, size, rdma] {
      Hello self;
      self.rank = options.rank;
      self.size = size;
      self.node = options.node;
      self.transport = options.transport;
      auto listeners = OpenListeners(options, self);
      self.rdma = self.rdma || rdma;
      ASSERT_TRUE(listeners.ok()) << listeners.status();
      auto rendezvous = Rendezvous(options, self);
      ASSERT_TRUE(rendezvous.ok()) << rendezvous.status();
      auto membership = std::make_unique<Membership>(
          options.rank, size, std::move(rendezvous->controls), options.peer_timeout);
      auto connector = *Connector::Make(std::move(rendezvous->table), options.rank, options.token,
                                        *std::move(listeners));
      std::vector<bool> peers(size);
      for (int r = 0; r < size; ++r) peers[r] = NeedsLink(options.rank, r, size);
      auto channels = connector->ConnectAll(peers, {Soon()});
      ASSERT_TRUE(channels.ok()) << channels.status();
      for (auto& channel : *channels) {
        if (wrap && channel != nullptr) channel = wrap(std::move(channel));
      }
      Links links(options.rank, *std::move(channels), std::move(connector), std::move(membership),
                  0);
      ASSERT_TRUE(links.membership().Begin("test").ok());
      body(links);
      links.membership().End();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

inline void OnEveryRanksLinks(int size, const std::function<void(Links&)>& body) {
  OnEveryRanksLinks(OptionsFor(size, GroupOptions::Transport::kTcp), body);
}

}  // namespace tutti::comm
