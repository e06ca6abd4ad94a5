package agentruntime_test

import (
	"context"
	"fmt"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"agentsite/agentruntime"
	"agentsite/internal/hub"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
)

// cpuTime returns the time that this process has computed.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkDispatch measures the way of a task from the queue to its driver: the decision, the reads and the
// row that counts the attempt. The driver never answers, so nothing of an answer is measured.
func BenchmarkDispatch(b *testing.B) {
	const tasks = 120 // below the bound of a provider, because all agents here have one
	for b.Loop() {
		b.StopTimer()
		h := build(b)
		var agents []hub.Agent
		for i := range 20 {
			agents = append(agents, storetest.Agent(b, h.db, fmt.Sprint("helper", i), storetest.Account(b, h.db, fmt.Sprint("owner", i))))
		}
		for i := range 12 {
			asker, agent := storetest.Account(b, h.db, fmt.Sprint("asker", i)), agents[i%len(agents)]
			for range tasks / 12 {
				storetest.Say(b, h.db, storetest.Conversation(b, h.db, asker, agent), asker, "help", agent)
			}
		}
		begun := make(chan struct{}, tasks)
		driver := agentFunc(func(ctx context.Context, _ task.Call, _ task.Sink) (task.Result, error) {
			begun <- struct{}{}
			<-ctx.Done()
			return task.Result{}, ctx.Err()
		})
		w := agentruntime.New(h.queue, h.db, h.chat, h.hub, h, h.calls, map[hub.Kind]task.Agent{h.agent.Kind: driver}, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(b.Context())
		before := cpuTime(b)
		b.StartTimer()
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		for range tasks {
			<-begun
		}
		b.StopTimer()
		b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/tasks, "cpu-µs/task")
		stop()
		<-done
		b.StartTimer()
	}
}
