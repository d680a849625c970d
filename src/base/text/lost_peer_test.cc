#include "base/text/lost_peer.h"

#include <gtest/gtest.h>

#include <string>

namespace tutti::base {
namespace {

TEST(SpeaksOfALostPeer, KnowsTheWordsOfTheCommonBackends) {
  for (const char* words :
       {"torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:275, ncclRemoteError: A "
        "call failed possibly due to a network error or a remote process exiting prematurely. Last "
        "error: socketProgress: Connection closed by remote peer n2<43211>",
        "torch.distributed.DistBackendError: [1] is setting up NCCL communicator and retrieving "
        "ncclUniqueId from [0] via c10d key-value store by key '0', but got error: Socket Timeout",
        "torch.distributed.DistStoreError: Socket Timeout",
        "torch.distributed.DistNetworkError: Connection was likely closed. Did the remote server "
        "shutdown or crash?",
        "torch.distributed.DistNetworkError: failed to recv, got 0 bytes",
        "RuntimeError: Rank 0 successfully reached monitoredBarrier, but received errors while "
        "waiting for send/recv from rank 1. Please check rank 1 logs for faulty rank.",
        "RuntimeError: [gloo/transport/tcp/pair.cc:553] Read error [10.0.0.2]:36277: Connection "
        "reset by peer",
        "RuntimeError: [gloo/transport/tcp/pair.cc:446] writev [10.0.0.2]:51004: Broken pipe",
        "terminate called: c10::DistBackendError: [Rank 1] Some NCCL operations have failed or "
        "timed out. Due to the asynchronous nature of CUDA kernels",
        "torch.distributed.elastic.rendezvous.api.RendezvousClosedError",
        "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.2]:4711",
        "gloo::IoException: Timed out waiting 1800000ms for recv operation to complete",
        "torch.distributed.DistBackendError: NCCL error: remote process exited or there was a "
        "network error",
        "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)",
        "OSError: [Errno 32] Broken pipe",
        "ConnectionResetError: [Errno 104] Connection reset by peer",
        "horovod.common.exceptions.HorovodInternalError: ", "UNAVAILABLE: lost rank 3: closed",
        "ABORTED: rank 12 left the group while others waited for it"}) {
    EXPECT_TRUE(SpeaksOfALostPeer(words)) << words;
  }
  for (const char* words : {"", "ValueError: rank 3 must be below 2", "KeyError: 'peer'",
                            "RuntimeError: CUDA out of memory"}) {
    EXPECT_FALSE(SpeaksOfALostPeer(words)) << words;
  }
}

TEST(SpeaksOfALostPeer, NotWhenTheNameOfThePeerIsNotKnown) {
  const std::string timed_out = "DistNetworkError: The client socket has timed out after 5000ms";
  EXPECT_TRUE(SpeaksOfALostPeer(timed_out));
  EXPECT_FALSE(SpeaksOfALostPeer(timed_out + " (gai error: -2 - Name or service not known)"));
}

TEST(BlamedRank, FindsTheRank) {
  EXPECT_EQ(BlamedRank("UNAVAILABLE: rank 12 left the group"), 12);
  EXPECT_EQ(BlamedRank("on rank 0: lost rank 3"), 3);
  EXPECT_EQ(BlamedRank("rank x left, rank 1 died"), 1);
  EXPECT_EQ(BlamedRank("rank 99999999999999 left"), -1);
  EXPECT_EQ(BlamedRank("frank 5"), -1);
}

}  // namespace
}  // namespace tutti::base
