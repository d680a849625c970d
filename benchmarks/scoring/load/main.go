// load asks a model server for the classes of JPEGs by vegeta's library and prints one line of JSON with what it measured.
//
//	load -url URL -images FOLDER -rate R -seconds S [-warm S] [-seed N] [-connections C] [-limit MS]   open loop
//	load -url URL -images FOLDER -connections C -seconds S [-warm S]                                   closed loop
//	load -url URL -images FOLDER -lone N                                                               one request after the other
//	load -stub ADDRESS                                                                                 answers at once
//
// In the open loop requests fall due at times that are a Poisson process, whatever the server does. A latency counts from the
// time at which its request was due, not from when it was sent: what a busy generator, a worker that is not there yet or a
// connection that is not free delays belongs to it, so nothing is omitted when the server stalls. sent_late_p99_ms says how much
// of it came before the sending. With -limit the open loop ends once more than a hundredth of its requests has been late, or one
// has failed: the 99th percentile is beyond the limit then, however the rest would go.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

type options struct {
	url, images, stub                    string
	rate, seconds, warm, limit, patience float64
	seed                                 int64
	connections, lone                    int
}

type report struct {
	Rate       float64        `json:"rate"`     // asked for; 0 of a closed loop
	Achieved   float64        `json:"achieved"` // answers of status 200 in a second
	Requests   int            `json:"requests"` // counted, as all below: those due after the warm-up
	Statuses   map[string]int `json:"statuses"`
	Errors     map[string]int `json:"errors"`
	Mean       float64        `json:"mean_ms"`
	P50        float64        `json:"p50_ms"`
	P90        float64        `json:"p90_ms"`
	P99        float64        `json:"p99_ms"`
	Max        float64        `json:"max_ms"`
	SentLate   float64        `json:"sent_late_p99_ms"`
	EndedEarly bool           `json:"ended_early"`       // -limit was passed: the percentiles are those until then
	Processor  float64        `json:"processor_seconds"` // the generator's own, warm-up and all
}

// readImages returns the files below a folder, in the order of their names.
func readImages(folder string) (images [][]byte, err error) {
	err = filepath.Walk(folder, func(path string, info os.FileInfo, err error) error {
		name := strings.ToLower(path)
		if err != nil || info.IsDir() || !(strings.HasSuffix(name, ".jpg") || strings.HasSuffix(name, ".jpeg")) {
			return err
		}
		content, err := os.ReadFile(path)
		images = append(images, content)
		return err
	})
	if err == nil && len(images) == 0 {
		err = fmt.Errorf("%s has no JPEG", folder)
	}
	return images, err
}

func inTurn(url string, images [][]byte) vegeta.Targeter {
	var next atomic.Uint64
	header := http.Header{"Content-Type": {"image/jpeg"}}
	return func(target *vegeta.Target) error {
		image := images[(next.Add(1)-1)%uint64(len(images))]
		*target = vegeta.Target{Method: "POST", URL: url, Body: image, Header: header}
		return nil
	}
}

// faultOf is empty if the answer names a class.
func faultOf(result *vegeta.Result) string {
	if result.Error == "" && !bytes.Contains(result.Body, []byte(`"class"`)) {
		return "an answer without a class"
	}
	return result.Error
}

func attack(o options, images [][]byte) report {
	schedule := newSchedule(o)
	workers := uint64(64) // an open loop starts more when it needs them
	settings := []func(*vegeta.Attacker){vegeta.Timeout(time.Duration(o.patience * 1e9)), vegeta.KeepAlive(true)}
	if o.rate == 0 {
		workers = uint64(o.connections)
		settings = append(settings, vegeta.MaxWorkers(workers))
	} else {
		settings = append(settings, vegeta.MaxConnections(o.connections))
	}
	attacker := vegeta.NewAttacker(append(settings, vegeta.Workers(workers))...)

	found := report{Rate: o.rate, Statuses: map[string]int{}, Errors: map[string]int{}}
	var latencies, late []float64
	beyond, allowed := 0, schedule.counted()/100
	warm, last := time.Duration(o.warm*1e9), time.Duration(0)
	for result := range attacker.Attack(inTurn(o.url, images), schedule, 0, "") {
		due, sent := schedule.due(result)
		if due < warm {
			continue
		}
		found.Requests++
		found.Statuses[fmt.Sprint(result.Code)]++
		latency := float64(sent-due+result.Latency) / 1e6
		latencies, late = append(latencies, latency), append(late, float64(sent-due)/1e6)
		last = max(last, sent+result.Latency)
		fault := faultOf(result)
		if fault != "" {
			found.Errors[fault]++
		}
		if fault != "" || latency > o.limit {
			beyond++
		}
		if o.limit > 0 && (beyond > allowed || fault != "") {
			found.EndedEarly = true
			schedule.stop()
		}
	}
	found.fill(latencies, late, (last - warm).Seconds())
	return found
}

func (r *report) fill(latencies, late []float64, seconds float64) {
	if len(latencies) == 0 {
		return
	}
	sort.Float64s(latencies)
	sort.Float64s(late)
	// The smallest value that at least this part of all does not exceed.
	at := func(sorted []float64, part float64) float64 {
		return sorted[min(len(sorted)-1, max(0, int(part*float64(len(sorted))+0.999999)-1))]
	}
	r.P50, r.P90, r.P99, r.Max = at(latencies, 0.5), at(latencies, 0.9), at(latencies, 0.99), at(latencies, 1)
	for _, latency := range latencies {
		r.Mean += latency / float64(len(latencies))
	}
	r.SentLate = at(late, 0.99)
	r.Achieved = float64(r.Statuses["200"]) / max(seconds, 1e-9)
}

func processorSeconds() float64 {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func serveStub(address string) error {
	answer := []byte(`{"predictions":[{"class":"none","probability":1}]}`)
	return http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		io.Copy(io.Discard, request.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Write(answer)
	}))
}

func main() {
	var o options
	flag.StringVar(&o.url, "url", "", "where to POST the images")
	flag.StringVar(&o.images, "images", "", "folder with JPEGs, sent in turn")
	flag.Float64Var(&o.rate, "rate", 0, "requests a second on average, in the open loop")
	flag.Float64Var(&o.seconds, "seconds", 10, "that count, after the warm-up")
	flag.Float64Var(&o.warm, "warm", 0, "seconds before those that count")
	flag.Float64Var(&o.limit, "limit", 0, "ms; the open loop ends once its 99th percentile must be beyond")
	flag.Float64Var(&o.patience, "timeout", 30, "seconds that an answer may take")
	flag.Int64Var(&o.seed, "seed", 1, "of the times of the open loop")
	flag.IntVar(&o.connections, "connections", 0, "of the closed loop; the most of the open loop, 0: as many as it needs")
	flag.IntVar(&o.lone, "lone", 0, "so many requests, one after the other, after five that do not count")
	flag.StringVar(&o.stub, "stub", "", "address to serve the stub at")
	flag.Parse()
	if o.stub != "" {
		log.Fatal(serveStub(o.stub))
	}
	if o.lone > 0 {
		o.rate, o.warm, o.connections = 0, 0, 1
	}
	if o.rate == 0 && o.connections == 0 {
		log.Fatal("load: one of -rate, -connections and -lone is wanted")
	}
	images, err := readImages(o.images)
	if err != nil {
		log.Fatal("load: ", err)
	}
	before := processorSeconds()
	found := attack(o, images)
	found.Processor = processorSeconds() - before
	json.NewEncoder(os.Stdout).Encode(found)
}
