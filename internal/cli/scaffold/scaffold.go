// Package scaffold makes and builds the folder of a package: its manifest, readme and source. It knows no portal.
package scaffold

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"agentsite/internal/packages"
)

// The files of a folder. Module is the built program.
const (
	ManifestFile = "agentsite.json"
	ReadmeFile   = "README.md"
	Module       = "program.wasm"
)

//go:embed go as rust
var templates embed.FS

// Languages are those that have a template.
func Languages() []string { return []string{"go", "rust", "as"} }

// Manifest is the content of ManifestFile: the manifest of a package, and the language that it is built from.
type Manifest struct {
	packages.Manifest
	Lang string `json:"lang"`
}

// Bounds are those of portals with the settings that they have by default.
var Bounds = packages.Limits{MemoryMiB: 64, Seconds: 30}

// MakeFolder writes a template into a folder that is empty or does not exist. The name of the package is that of the
// folder.
func MakeFolder(dir, lang string) error {
	if !slices.Contains(Languages(), lang) {
		return fmt.Errorf("there is no template for %q; use one of %s", lang, strings.Join(Languages(), ", "))
	}
	name := filepath.Base(filepath.Clean(dir))
	if have, err := os.ReadDir(dir); err == nil && len(have) > 0 {
		return fmt.Errorf("the folder %s is not empty; name a new one", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	m := Manifest{Lang: lang, Manifest: packages.Manifest{Name: name, Version: "0.1.0",
		Summary: "Splits a bill between people.", Licence: "MIT", Entry: "run", Grants: []packages.Grant{},
		Languages: []string{"en"}}}
	if err := packages.CheckManifest(&m.Manifest, Bounds); err != nil {
		return fmt.Errorf("the package is named like its folder: %w", err)
	}
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, ManifestFile), append(b, '\n'), 0o644); err != nil {
		return err
	}
	readme := "# " + name + "\n\nSend it an amount, such as `84.60`, and it asks how many people share it. The " +
		"answer has a file with a line for each.\n"
	if err := os.WriteFile(filepath.Join(dir, ReadmeFile), []byte(readme), 0o644); err != nil {
		return err
	}
	return copyTemplate(dir, lang, name)
}

// copyTemplate writes the files of a language. Their names end in .txt, so that no tool takes them for code of ours.
func copyTemplate(dir, lang, name string) error {
	return fs.WalkDir(templates, lang, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := templates.ReadFile(at)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(strings.TrimSuffix(strings.TrimPrefix(at, lang+"/"), ".txt")))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, []byte(strings.ReplaceAll(string(b), "NAME", path.Base(name))), 0o644)
	})
}

// maxFile bounds the manifest and the readme, in bytes.
const maxFile = 1 << 20

// ReadFolder reads and checks the manifest and the readme of a folder.
func ReadFolder(dir string) (m Manifest, readme string, err error) {
	b, err := readFile(filepath.Join(dir, ManifestFile))
	if err != nil {
		return m, "", fmt.Errorf("%w; `agentsite package init` makes one", err)
	}
	dec := json.NewDecoder(strings.NewReader(string(b)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return m, "", fmt.Errorf("read %s: %w", ManifestFile, err)
	}
	if err := packages.CheckManifest(&m.Manifest, Bounds); err != nil {
		return m, "", fmt.Errorf("%s: %w", ManifestFile, err)
	}
	b, err = readFile(filepath.Join(dir, ReadmeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return m, "", nil
	}
	return m, string(b), err
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s is larger than 1 MiB", name)
	}
	return b, err
}

// step is a command of a build.
type step struct {
	env  []string
	args []string
}

func stepsOf(lang string) ([]step, error) {
	switch lang {
	case "go":
		return []step{{[]string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0"}, []string{"go", "build", "-trimpath",
			"-buildmode=c-shared", "-ldflags=-s -w", "-o", Module, "."}}}, nil
	case "as":
		return []step{{nil, []string{"npm", "install", "--no-audit", "--no-fund"}},
			{nil, []string{"npx", "asc", "program.ts", "--runtime", "stub", "--use", "abort=program/abort", "-O", "-o",
				Module}}}, nil
	case "rust":
		return []step{{nil, []string{"rustc", "--edition", "2021", "--target", "wasm32-unknown-unknown", "--crate-type",
			"cdylib", "-C", "opt-level=s", "-C", "strip=symbols", "-o", Module, "program.rs"}}}, nil
	}
	return nil, fmt.Errorf("%s: there is no build for the lang %q; build %s yourself", ManifestFile, lang, Module)
}

// BuildModule builds the module of a folder, with the tools of its language. Their output goes to out.
func BuildModule(ctx context.Context, dir string, out io.Writer) error {
	m, _, err := ReadFolder(dir)
	if err != nil {
		return err
	}
	steps, err := stepsOf(m.Lang)
	if err != nil {
		return err
	}
	for _, s := range steps {
		cmd := exec.CommandContext(ctx, s.args[0], s.args[1:]...)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), s.env...), out, out
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(s.args, " "), err)
		}
	}
	return nil
}

// ReadModule returns the built module of a folder.
func ReadModule(dir string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(dir, Module))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; `agentsite package build` makes it", err)
	}
	return b, err
}
