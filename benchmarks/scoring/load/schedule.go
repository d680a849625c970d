package main

import (
	"math/rand"
	"sync/atomic"
	"syscall"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

const loneWarm = 5

// schedule is the pacer of an attack: it says when each request is due. An open loop has its times before it begins; two of one
// seed and different rates have the same gaps but for their scale. In a closed loop a request is due when a worker is free.
type schedule struct {
	open     bool
	times    []time.Duration // of an open loop
	seconds  time.Duration   // of a closed one, which also ends after `hits`, if those are not 0
	hits     uint64
	warm     time.Duration
	began    time.Time // set before the first request is sent
	finished atomic.Bool
}

func newSchedule(o options) *schedule {
	s := &schedule{open: o.rate > 0, warm: time.Duration(o.warm * 1e9), seconds: time.Duration((o.warm + o.seconds) * 1e9)}
	if o.lone > 0 {
		s.hits = uint64(o.lone + loneWarm)
	}
	gaps := rand.New(rand.NewSource(o.seed))
	for at := 0.0; s.open; {
		at += gaps.ExpFloat64() / o.rate
		if at > o.warm+o.seconds {
			break
		}
		s.times = append(s.times, time.Duration(at*1e9))
	}
	return s
}

func (s *schedule) Pace(elapsed time.Duration, hits uint64) (time.Duration, bool) {
	if hits == 0 {
		s.began = time.Now().Add(-elapsed)
	}
	if s.finished.Load() {
		return 0, true
	}
	if s.open {
		if hits >= uint64(len(s.times)) {
			return 0, true
		}
		sleep(s.times[hits] - elapsed)
		return 0, false
	}
	if s.hits > 0 {
		return 0, hits >= s.hits
	}
	return 0, elapsed >= s.seconds
}

// sleep is the kernel's: time.Sleep, which vegeta calls for what Pace returns, is up to a millisecond late. The signals by which
// Go's runtime interrupts a thread do not end it.
func sleep(duration time.Duration) {
	left := syscall.NsecToTimespec(max(0, int64(duration)))
	for syscall.Nanosleep(&left, &left) == syscall.EINTR {
	}
}

func (s *schedule) Rate(time.Duration) float64 {
	if len(s.times) == 0 {
		return 0
	}
	return float64(len(s.times)) / s.times[len(s.times)-1].Seconds()
}

func (s *schedule) stop() { s.finished.Store(true) }

// counted is the number of an open loop's requests that are due after the warm-up.
func (s *schedule) counted() int {
	count := 0
	for _, at := range s.times {
		if at >= s.warm {
			count++
		}
	}
	return count
}

// due returns when a request was due and when it was sent, since the beginning. Workers number their requests as they begin
// them: of two that begin within some microseconds one may have the time of the other, which is as near.
func (s *schedule) due(result *vegeta.Result) (due, sent time.Duration) {
	sent = result.Timestamp.Sub(s.began)
	switch {
	case s.open:
		return s.times[result.Seq], sent
	case s.hits > 0 && result.Seq < loneWarm:
		return -1, sent
	}
	return max(0, sent), max(0, sent)
}
