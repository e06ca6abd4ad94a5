package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentsite/bench/proc"
)

// source returns the random numbers of the current round, which depend on the seed and the round only,
// so that a later round can be repeated without the earlier ones.
func (w *world) source() *rand.Rand {
	return rand.New(rand.NewPCG(w.cfg.seed, uint64(w.stats.rounds)))
}

// restart starts the portal on data and records the slowest start. A start that takes longer than the
// configured limit is a violation.
func (w *world) restart(data string) (*portal, error) {
	p, err := startReady(w.cfg.binary, data, w.log)
	if err != nil {
		return nil, err
	}
	w.stats.slowest = max(w.stats.slowest, p.took)
	if p.took > w.cfg.within {
		p.kill()
		return nil, violationf(misbehaved, "the restart took %s, more than %s", p.took, w.cfg.within)
	}
	return p, nil
}

func (w *world) report(out io.Writer, what string, p *portal, before int) {
	if w.cfg.verbose {
		fmt.Fprintf(out, "round %d: %s, %d acknowledged, ready again in %d ms\n", w.stats.rounds, what, w.acknowledged()-before, p.took.Milliseconds())
	}
}

// beginRound starts the load of the next round and returns after a random time. before is the number of
// messages that were acknowledged earlier; the caller calls stop.
func (w *world) beginRound(base string) (rng *rand.Rand, before int, stop func(), err error) {
	if w.stats.rounds%generation == 0 {
		if err := w.newRooms(context.Background(), base); err != nil {
			return nil, 0, nil, err
		}
	}
	w.stats.rounds++
	rng, before = w.source(), w.acknowledged()
	stop = w.load(base, rng)
	time.Sleep(time.Duration(20+rng.IntN(781)) * time.Millisecond)
	return rng, before, stop, nil
}

func (w *world) killRounds(out io.Writer) ([]violation, error) {
	p, err := startReady(w.cfg.binary, w.data, w.log)
	if err != nil {
		return nil, err
	}
	defer func() { p.kill() }()
	if err := w.populate(w.data); err != nil {
		return nil, err
	}
	for w.stats.rounds < w.cfg.rounds {
		rng, before, stop, err := w.beginRound(p.url)
		if err != nil {
			return nil, err
		}
		what := "SIGKILL"
		if rng.IntN(6) == 0 {
			what = "SIGTERM"
			w.stats.terms++
			err = p.stop() // clients keep sending while the portal drains
		} else {
			w.stats.kills++
			p.kill()
		}
		stop()
		if err == nil && what == "SIGTERM" {
			err = verify(w.cfg.binary, w.data)
		}
		if err != nil {
			return nil, err
		}
		if rng.IntN(4) == 0 {
			// Kill the portal a second time, during its start.
			half, _, err := start(w.cfg.binary, w.data, w.log)
			if err != nil {
				return nil, err
			}
			time.Sleep(time.Duration(rng.IntN(40)) * time.Millisecond)
			half.kill()
			what += ", and SIGKILL at start"
			w.stats.kills++
		}
		again, err := w.restart(w.data)
		if err != nil {
			return nil, err
		}
		p = again
		w.report(out, what, p, before)
		last := w.stats.rounds == w.cfg.rounds
		if found := w.check(p.url, rng, last); len(found) > 0 {
			return found, nil
		}
		w.again(p.url, rng)
	}
	// Check the messages that were sent again after the last round, too.
	if found := w.check(p.url, w.source(), false); len(found) > 0 {
		return found, nil
	}
	if err := p.stop(); err != nil {
		return nil, err
	}
	return nil, verify(w.cfg.binary, w.data)
}

// serverRounds kills the database server while the portal runs on.
func (w *world) serverRounds(out io.Writer) ([]violation, error) {
	p, err := startReady(w.cfg.binary, w.data, w.log)
	if err != nil {
		return nil, err
	}
	defer func() { p.kill() }()
	if err := w.populate(w.data); err != nil {
		return nil, err
	}
	for w.stats.rounds < w.cfg.rounds {
		rng, before, stop, err := w.beginRound(p.url)
		if err != nil {
			return nil, err
		}
		w.server.Kill()
		w.stats.serverKills++
		time.Sleep(time.Duration(rng.IntN(400)) * time.Millisecond)
		if err := w.server.Start(context.Background()); err != nil {
			stop()
			return nil, err
		}
		stop()
		if err := w.awaitWrites(p.url); err != nil {
			return nil, err
		}
		w.report(out, "SIGKILL of the server", p, before)
		if found := w.check(p.url, rng, w.stats.rounds == w.cfg.rounds); len(found) > 0 {
			return found, nil
		}
		w.again(p.url, rng)
	}
	if found := w.check(p.url, w.source(), false); len(found) > 0 {
		return found, nil
	}
	if err := p.stop(); err != nil {
		return nil, err
	}
	return nil, verify(w.cfg.binary, w.data)
}

// awaitWrites returns after a write succeeded, so that those before it have ended: the portal goes on with
// writes that its clients gave up.
func (w *world) awaitWrites(base string) error {
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		status, err := w.people[0].call(context.Background(), "POST", base+"/api/v1/conversations",
			map[string]any{"members": []string{}}, nil)
		switch {
		case err == nil && status == 201:
			return nil
		case time.Since(began) > settleTimeout:
			return violationf(misbehaved, "no write after %s with the server: %d %v", settleTimeout, status, err)
		}
	}
}

func (w *world) powerRounds(out io.Writer) (found []violation, err error) {
	from := "" // the first portal begins with an empty disk
	if !w.cfg.fresh {
		p, err := startReady(w.cfg.binary, w.data, w.log)
		if err != nil {
			return nil, err
		}
		err = w.populate(w.data)
		if err = errors.Join(err, p.stop()); err != nil {
			return nil, err
		}
		from = w.data
	} else if err := w.firstStarts(); err != nil {
		return nil, err
	}
	for w.stats.rounds < w.cfg.rounds {
		image := filepath.Join(w.work, fmt.Sprintf("image-%d", w.stats.rounds+1))
		what, before, err := w.cutOnce(from, image)
		if err != nil {
			return nil, err
		}
		kept := image + "-as-cut" // the portal changes the image, so keep a copy for a failed run
		if err := copyFolder(image, kept); err != nil {
			return nil, err
		}
		p, err := w.restart(image)
		if err != nil {
			return nil, err
		}
		w.report(out, what, p, before)
		rng, last := w.source(), w.stats.rounds == w.cfg.rounds
		found = w.check(p.url, rng, last)
		if len(found) == 0 {
			w.again(p.url, rng)
			found = w.check(p.url, rng, false)
		}
		if rng.IntN(3) > 0 {
			p.kill() // the portal of the next round then begins with a longer write-ahead log
		} else {
			err = p.stop()
		}
		if err != nil || len(found) > 0 {
			return found, err
		}
		if err := verify(w.cfg.binary, image); err != nil {
			return nil, err
		}
		os.RemoveAll(kept)
		if from != "" {
			os.RemoveAll(from)
		}
		from = image
	}
	return nil, nil
}

// firstStarts cuts the power while a portal creates its data folder, or soon after. The next start must
// succeed with whatever is left.
func (w *world) firstStarts() error {
	rng := w.source()
	for n := range min(10, w.cfg.rounds) {
		f, err := proc.MountPower(w.cfg.powerloss, "", w.work)
		if err != nil {
			return err
		}
		p, ready, err := start(w.cfg.binary, f.At, w.log)
		if err != nil {
			f.Close()
			return err
		}
		if n%2 == 0 {
			select { // every second cut comes right after the portal is ready
			case <-ready:
			case <-p.exited:
			case <-time.After(readyTimeout):
			}
		} else {
			time.Sleep(time.Duration(rng.IntN(80)) * time.Millisecond)
		}
		image, keep := filepath.Join(w.work, fmt.Sprintf("first-%d", n)), 0.0
		if n%4 > 1 {
			keep = rng.Float64()
		}
		_, err = f.Cut(image, keep, rng.Uint64())
		p.kill()
		f.Close()
		if err != nil {
			return err
		}
		w.stats.cuts++
		if p, err = w.restart(image); err != nil {
			if f, ok := errors.AsType[failure](err); ok {
				return violationf(f.kind, "after a power cut at its first start (%s, as the next start left it): %s", image, f.text)
			}
			return err
		}
		if err := errors.Join(p.stop(), verify(w.cfg.binary, image)); err != nil {
			return err
		}
		os.RemoveAll(image)
	}
	return nil
}

// cutOnce runs a portal on a copy of the folder from (empty if ""), cuts the power under load, and
// writes the remaining data to image. It returns a description of the cut for the report and the number
// of messages acknowledged before the load.
func (w *world) cutOnce(from, image string) (what string, before int, err error) {
	f, err := proc.MountPower(w.cfg.powerloss, from, w.work)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	p, err := startReady(w.cfg.binary, f.At, w.log)
	if err != nil {
		return "", 0, err
	}
	defer p.kill()
	if w.people == nil {
		if err := w.populate(f.At); err != nil {
			return "", 0, err
		}
	}
	if w.stats.rounds%generation == 0 {
		if err := w.newRooms(context.Background(), p.url); err != nil {
			return "", 0, err
		}
	}
	w.stats.rounds++
	w.stats.cuts++
	rng := w.source()
	keep := 0.0
	if rng.IntN(2) == 0 {
		keep = 0.1 + 0.8*rng.Float64()
	}
	before = w.acknowledged()
	stop := w.load(p.url, rng)
	time.Sleep(time.Duration(20+rng.IntN(781)) * time.Millisecond)
	cut := time.Now()
	lostBytes, err := f.Cut(image, keep, rng.Uint64())
	p.kill()
	stop()
	w.forget(cut)
	w.stats.lostBytes += lostBytes
	return strings.TrimSpace(fmt.Sprintf("power cut, %d kB not fsynced, of which %.0f %% kept", lostBytes/1000, keep*100)), before, err
}
