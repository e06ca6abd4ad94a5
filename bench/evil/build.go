package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// change is one fragment of a file, which must be there once, and what it is
// where a check can be missing: OFF stands for that it is. With an empty to,
// from is a condition that is not fulfilled then.
type change struct{ file, from, to string }

// check is a part of the product that keeps a lie from its goal.
type check struct {
	name    string
	changes []change
}

// switches is the package that is added to a build without checks.
const switches = "internal/unchecked"

// with is what the fragment becomes: off is the expression for that the check is
// missing.
func (c change) with(off string) string {
	to := c.to
	if to == "" {
		at := len("if ")
		if strings.HasPrefix(c.from, "case ") {
			at = len("case ")
		}
		condition, end := c.from[at:len(c.from)-1], c.from[len(c.from)-1:]
		if begin, rest, ok := strings.Cut(condition, "; "); ok {
			to = c.from[:at] + begin + "; !OFF && (" + strings.TrimSpace(rest) + ")"
		} else {
			to = c.from[:at] + "!OFF && (" + strings.TrimSpace(condition) + ")"
		}
		if end == "{" {
			to += " "
		}
		to += end
	}
	return strings.ReplaceAll(to, "OFF", off)
}

// overlay writes files as they are where these checks can be missing, below dir,
// and returns the file that tells the go command of them. root is that of the
// module. The build misses the checks that UNCHECKED names, with bars between
// them, or all of them at any rate when always.
func overlay(root, dir string, list []check, always bool) (string, error) {
	files := make(map[string][]byte)
	var names []string
	for n, c := range list {
		off := fmt.Sprintf("unchecked.Off[%d]", n)
		names = append(names, c.name)
		for _, ch := range c.changes {
			b := files[ch.file]
			if b == nil {
				var err error
				if b, err = os.ReadFile(filepath.Join(root, ch.file)); err != nil {
					return "", err
				}
			}
			if n := bytes.Count(b, []byte(ch.from)); n != 1 {
				return "", fmt.Errorf("%s: %s has %d times\n%s", c.name, ch.file, n, ch.from)
			}
			files[ch.file] = bytes.Replace(b, []byte(ch.from), []byte(ch.with(off)), 1)
		}
	}
	for name, b := range files {
		at := bytes.Index(append([]byte{'\n'}, b...), []byte("\npackage "))
		end := bytes.IndexByte(b[max(at, 0):], '\n')
		if at < 0 || end < 0 || !bytes.Contains(b, []byte("unchecked.Off")) {
			return "", fmt.Errorf("%s is no Go file, or nothing can be missing there", name)
		}
		files[name] = slices.Concat(b[:at+end], []byte("\n\nimport \"agentsite/"+switches+"\"\n"), b[at+end:])
	}
	files[switches+"/unchecked.go"] = fmt.Appendf(nil, `package unchecked

import (
	"os"
	"slices"
	"strings"
)

// Off says which checks are missing.
var Off = func() (off [%d]bool) {
	for i, name := range %#v {
		off[i] = %v || slices.Contains(strings.Split(os.Getenv("UNCHECKED"), "|"), name)
	}
	return off
}()
`, len(names), names, always)
	var o struct{ Replace map[string]string }
	o.Replace = make(map[string]string)
	for name, b := range files {
		abs, err := filepath.Abs(filepath.Join(root, name))
		if err != nil {
			return "", err
		}
		at := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(at, b, 0o600); err != nil {
			return "", err
		}
		o.Replace[abs] = at
	}
	b, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	at := filepath.Join(dir, "overlay.json")
	return at, os.WriteFile(at, b, 0o600)
}
