package bundle_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"agentsite/agentruntime/bundle"
	"agentsite/agentruntime/bundle/tools"
	"agentsite/internal/testing/racetest"
)

var write = flag.Bool("write", false, "build the module and write it")

// sourceHash returns a hash of the files that the module is built from.
func sourceHash(t *testing.T) string {
	t.Helper()
	var names []string
	for _, folder := range []string{"tools", "program"} {
		list, err := filepath.Glob(folder + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, slices.DeleteFunc(list, func(n string) bool {
			return strings.HasSuffix(n,
				"_test.go")
		})...)
	}
	sum := sha256.New()
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(sum, "%s %d\n%s", filepath.ToSlash(name), len(b), b)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func build(t *testing.T) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program.wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-ldflags=-s -w "+
		"-buildid=", "-o",
		file, "./program")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWASM=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The stored module is that of the source. Another release of Go makes other bytes of the same source, so the bytes are
// compared only with that which built them.
func TestModule_IsBuiltFromTheSource(t *testing.T) {
	racetest.Skip(t)
	hashOf := func(b []byte) string {
		sum := sha256.Sum256(b)
		return hex.EncodeToString(sum[:])
	}
	if *write {
		b := build(t)
		var packed bytes.Buffer
		z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is valid
		if _, err := z.Write(b); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("program.wasm.gz", packed.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		line := hashOf(b) + " " + runtime.Version() + " " + sourceHash(t) + "\n"
		if err := os.WriteFile("program.sum", []byte(line), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	b, err := bundle.Module()
	if err != nil {
		t.Fatal(err)
	}
	line, err := os.ReadFile("program.sum")
	if err != nil {
		t.Fatal(err)
	}
	part := strings.Fields(string(line))
	if len(part) != 3 || hashOf(b) != part[0] || bundle.Hash != part[0] {
		t.Fatalf("the hash of the module is %s, and the file of sums has %q", hashOf(b), line)
	}
	if part[2] != sourceHash(t) {
		t.Fatal("the source changed since the module was built: run go generate ./agentruntime/bundle")
	}
	if part[1] == runtime.Version() && hashOf(build(t)) != part[0] {
		t.Error("the source makes another module: run go generate ./agentruntime/bundle")
	}
}

func TestDrafts_NameEachProgramOnce(t *testing.T) {
	var names []string
	for _, d := range bundle.Drafts() {
		names = append(names, *d.Name)
		if !bundle.Has(*d.Name) || len((*d.Skills)[0].Examples) == 0 {
			t.Errorf("%s is no program, or has no example", *d.Name)
		}
	}
	if !slices.Equal(names, tools.Names) {
		t.Errorf("agents: %v, programs: %v", names, tools.Names)
	}
}
