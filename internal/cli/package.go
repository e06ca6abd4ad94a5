package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"agentsite/internal/cli/scaffold"
	"agentsite/internal/weborigin"
)

func packageInitFlags(fs *flags) {
	fs.StringVar(&fs.lang, "lang", "go", "`LANGUAGE` of the template: "+strings.Join(scaffold.Languages(), ", "))
}

// runPackageInit writes the template of a package into a folder.
func runPackageInit(_ context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("package init", args, 1, 1); err != nil {
		return err
	}
	if err := scaffold.MakeFolder(args[0], fs.lang); err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "The folder %s has a package in %s. Edit %s, then run `agentsite package build %s`.\n",
		args[0], fs.lang, scaffold.ManifestFile, args[0])
	return nil
}

func folderOf(args []string) string {
	if len(args) == 0 {
		return "."
	}
	return args[0]
}

// runPackageBuild builds the module of a package.
func runPackageBuild(ctx context.Context, e env, _ *flags, args []string) error {
	if err := checkArgs("package build", args, 0, 1); err != nil {
		return err
	}
	dir := folderOf(args)
	if err := scaffold.BuildModule(ctx, dir, e.stderr); err != nil {
		return err
	}
	b, err := scaffold.ReadModule(dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "%s %d bytes, sha256 %s\n", filepath.Join(dir, scaffold.Module), len(b), hashOf(b))
	return nil
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// shownPackage is a package in the API's form, with the fields that commands use.
type shownPackage struct {
	Handle  string `json:"handle"`
	Name    string `json:"name"`
	Portal  string `json:"portal"`
	Version string `json:"version"`
	Module  string `json:"module"`
	Licence string `json:"licence"`
	Size    int64  `json:"size"`
	Grants  []struct {
		Name, Why string
	} `json:"grants"`
}

// runPackagePublish uploads the module of a package and publishes it as a new version.
func runPackagePublish(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("package publish", args, 0, 1); err != nil {
		return err
	}
	c, err := newClient(ctx, fs)
	if err != nil {
		return err
	}
	dir := folderOf(args)
	m, readme, err := scaffold.ReadFolder(dir)
	if err != nil {
		return err
	}
	module, err := scaffold.ReadModule(dir)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost,
		c.base+"/api/v1/hosting/modules?name="+url.QueryEscape(m.Name+"-"+m.Version+".wasm"), bytes.NewReader(module))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.doRequest(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	var p shownPackage
	if err := c.callJSON(ctx, http.MethodPost, "/api/v1/packages", map[string]any{"name": m.Name, "version": m.Version,
		"summary": m.Summary, "licence": m.Licence, "entry": m.Entry, "grants": m.Grants, "limits": m.Limits,
		"languages": m.Languages, "module": hashOf(module), "readme": readme}, &p); err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "%s@%s/%s published\n", cleanText(p.Name), cleanText(p.Portal), cleanText(p.Version))
	return nil
}

// runPackageFetch downloads the module of a package and verifies it: from the portal that is asked, or from the one
// that publishes it.
func runPackageFetch(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("package fetch", args, 1, 1); err != nil {
		return err
	}
	c, err := newClient(ctx, fs)
	if err != nil {
		return err
	}
	ref, version, _ := strings.Cut(args[0], "/")
	path := "/api/v1/packages/" + url.PathEscape(ref)
	if version != "" {
		path += "/" + url.PathEscape(version)
	}
	var p shownPackage
	if err := c.callJSON(ctx, http.MethodGet, path, nil, &p); err != nil {
		return err
	}
	name := p.Name + "-" + p.Version + ".wasm"
	if name != filepath.Base(name) || p.Size < 1 || p.Size > maxAnswer {
		return fmt.Errorf("the answer of %s about the package %.80q has a wrong name or size", c.base, args[0])
	}
	b, err := c.fetchModule(ctx, p, p.Handle)
	if apiErr, ok := errors.AsType[apiError](err); ok && apiErr.Kind == "not_found" && p.Handle != p.Name {
		scheme := "https://"
		if weborigin.IsLoopback((&url.URL{Host: p.Portal}).Hostname()) {
			scheme = "http://"
		}
		far := &client{base: scheme + p.Portal, http: c.http} // the token is for the other portal only
		b, err = far.fetchModule(ctx, p, p.Name)
	}
	if err != nil {
		return err
	}
	if hashOf(b) != p.Module {
		return fmt.Errorf("the module that was sent is not %s, so it was not kept", p.Module)
	}
	if err := os.WriteFile(name, b, 0o600); err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "%s %d bytes, sha256 %s, licence %s\n", name, len(b), p.Module, cleanText(p.Licence))
	for _, g := range p.Grants {
		fmt.Fprintf(e.stdout, "asks for %s: %s\n", cleanText(g.Name), cleanText(g.Why))
	}
	return nil
}

// fetchModule downloads a module under the name that the package has at the portal.
func (c *client) fetchModule(ctx context.Context, p shownPackage, name string) ([]byte, error) {
	resp, err := c.sendJSON(ctx, http.MethodGet,
		"/api/v1/packages/"+url.PathEscape(name)+"/"+url.PathEscape(p.Version)+"/module", nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(io.LimitReader(resp.Body, p.Size+1))
}
