package proc

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// PowerFolder is a folder mounted by the program bench/powerloss, which can simulate a power cut.
type PowerFolder struct {
	At    string // the folder
	cmd   *exec.Cmd
	in    *os.File
	lines chan string
	done  chan error
}

// MountPower mounts a new folder below work with the files of the folder from, or without files if from
// is "". The caller must call Close.
func MountPower(binary, from, work string) (*PowerFolder, error) {
	at, err := os.MkdirTemp(work, "mount-")
	if err != nil {
		return nil, err
	}
	f := &PowerFolder{At: at, lines: make(chan string, 4), done: make(chan error, 1)}
	f.cmd = exec.Command(binary, "-mount", at)
	if from != "" {
		f.cmd.Args = append(f.cmd.Args, "-from", from)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	f.in, f.cmd.Stdin, f.cmd.Stderr = w, r, os.Stderr
	stdout, err := f.cmd.StdoutPipe()
	if err == nil {
		err = f.cmd.Start()
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	go func() {
		in := bufio.NewScanner(stdout)
		for in.Scan() {
			f.lines <- in.Text()
		}
		close(f.lines)
		f.done <- f.cmd.Wait()
	}()
	if line, err := f.line(); err != nil || line != "mounted" {
		f.Close()
		return nil, fmt.Errorf("mount the folder of powerloss: %q, %v", line, err)
	}
	return f, nil
}

func (f *PowerFolder) line() (string, error) {
	select {
	case l, ok := <-f.lines:
		if !ok {
			return "", errors.New("powerloss has ended")
		}
		return l, nil
	case <-time.After(30 * time.Second):
		return "", errors.New("powerloss does not answer")
	}
}

// Cut writes to image the files that a power cut at this moment would leave. Data that was not flushed
// survives with probability keep. It returns the number of lost bytes.
func (f *PowerFolder) Cut(image string, keep float64, seed uint64) (lostBytes int64, err error) {
	if _, err := fmt.Fprintf(f.in, "cut %s %g %d\n", image, keep, seed); err != nil {
		return 0, err
	}
	line, err := f.line()
	if err != nil {
		return 0, err
	}
	var files, forgotten, syncs int64
	if _, err := fmt.Sscanf(line, "cut files=%d lost=%d forgotten=%d syncs=%d", &files, &lostBytes, &forgotten, &syncs); err != nil {
		return 0, fmt.Errorf("powerloss: %s", line)
	}
	return lostBytes, nil
}

// SetFails lets every fsync in the folder from now on fail with EIO, or succeed again.
func (f *PowerFolder) SetFails(fails bool) error {
	word := "heal"
	if fails {
		word = "fail"
	}
	if _, err := fmt.Fprintln(f.in, word); err != nil {
		return err
	}
	if line, err := f.line(); err != nil || line != "done" {
		return fmt.Errorf("powerloss: %q, %w", line, err)
	}
	return nil
}

// Close unmounts the folder. The caller must have ended the processes that use it.
func (f *PowerFolder) Close() {
	f.in.Close()
	select {
	case <-f.done:
	case <-time.After(10 * time.Second):
		f.cmd.Process.Kill()
		<-f.done
		syscall.Unmount(f.At, syscall.MNT_DETACH)
	}
	os.Remove(f.At)
}
