package app_test

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// person is a profile as the API returns it.
type person struct {
	Name, Picture    string
	DisplayName      string `json:"display_name"`
	Shown            bool
	Agents, Packages []string
}

// readPerson reads the profile of a person; ok is false if it is absent.
func readPerson(t *testing.T, c *apptest.Client, name string) (p person, ok bool) {
	t.Helper()
	a := c.Do(http.MethodGet, "/api/v1/people/"+name, nil)
	if a.Status == http.StatusNotFound {
		return person{}, false
	}
	if err := json.Unmarshal([]byte(a.Body), &p); err != nil || a.Status != http.StatusOK {
		t.Fatalf("%d %.300s", a.Status, a.Body)
	}
	return p, true
}

// putProfile sends the form of the profile with a picture, as a browser does.
func putProfile(t *testing.T, c *apptest.Client, fields url.Values, picture []byte) apptest.Answer {
	t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for name := range fields {
		w.WriteField(name, fields.Get(name))
	}
	f, err := w.CreateFormFile("picture", "me.png")
	if err != nil {
		t.Fatal(err)
	}
	f.Write(picture)
	w.Close()
	return c.Do(http.MethodPost, "/account/profile", &body,
		func(r *http.Request) { r.Header.Set("Content-Type", w.FormDataContentType()) })
}

// Others see the name and the public agents of a person, and the rest only while the person shows it.
func TestProfile_IsPrivateUntilShown(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada, guest := p.User(t, "ada"), p.Guest(t)
	var drawn bytes.Buffer
	if err := png.Encode(&drawn, image.NewRGBA(image.Rect(0, 0, 300, 200))); err != nil {
		t.Fatal(err)
	}
	if a := putProfile(t, ada, url.Values{"display_name": {"Ada L."}}, drawn.Bytes()); a.Status != http.StatusSeeOther {
		t.Fatalf("%d %.300s", a.Status, a.Body)
	}
	if got, ok := readPerson(t, guest, "ada"); ok {
		t.Errorf("somebody who shows nothing is %+v", got)
	}
	far := agenttest.NewOpenAIServer(t)
	public := ada.Agent("public", far.Base(agenttest.Echo))
	ada.Agent("private", far.Base(agenttest.Echo))
	ada.Agent("unlisted", far.Base(agenttest.Echo))
	own, _ := readPerson(t, ada, "ada")
	if own.DisplayName != "Ada L." || !strings.HasPrefix(own.Picture, "/people/ada/picture?v=") || own.Shown {
		t.Errorf("one's own profile is %+v", own)
	}
	hidden := func(c *apptest.Client) {
		t.Helper()
		got, ok := readPerson(t, c, "ada")
		if !ok || got.DisplayName+got.Picture != "" || len(got.Packages) > 0 ||
			!slices.Equal(got.Agents, []string{public}) {
			t.Errorf("%q sees %+v", c.Name, got)
		}
	}
	for _, c := range []*apptest.Client{guest, p.User(t, "bob"), p.Operator(t, "op"), ada.NewToken("agents:read")} {
		hidden(c)
	}
	guest.Must(http.MethodGet, own.Picture, nil, http.StatusNotFound)
	ada.Must(http.MethodGet, own.Picture, nil, http.StatusOK)
	ada.NewToken("account").Must(http.MethodGet, "/api/v1/people/ada", nil, http.StatusForbidden)

	ada.Must(http.MethodPost, "/account/profile", url.Values{"display_name": {"Ada L."}, "shown": {"yes"}},
		http.StatusSeeOther)
	if got, _ := readPerson(t, guest, "ada"); got.DisplayName != "Ada L." || got.Picture != own.Picture || !got.Shown {
		t.Errorf("a guest sees %+v", got)
	}
	a := guest.Must(http.MethodGet, own.Picture, nil, http.StatusOK)
	if m, err := png.Decode(strings.NewReader(a.Body)); err != nil || m.Bounds().Dx() != 128 || m.Bounds().Dy() != 128 {
		t.Errorf("the picture is %v, %v", m, err)
	}
	const onlyYou = "Only you see your picture and display name. Choose"
	if body := ada.Must(http.MethodGet, "/account", nil, http.StatusOK).Body; strings.Contains(body, onlyYou) {
		t.Error("a profile that is shown is called hidden")
	}
	a = ada.Must(http.MethodPost, "/account/profile", url.Values{"display_name": {"Ada L."}}, http.StatusSeeOther)
	if body := ada.Must(http.MethodGet, a.Header.Get("Location"), nil, http.StatusOK).Body; !strings.Contains(body,
		"Your profile is saved. Only you see") || !strings.Contains(body, onlyYou) {
		t.Error("the account page does not say that only its owner sees the profile")
	}
	hidden(guest)
	guest.Must(http.MethodGet, own.Picture, nil, http.StatusNotFound)
}

// Names and pictures that are not what they must be change nothing and say why.
func TestProfile_RefusesHostileInput(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	ada := p.User(t, "ada")
	for _, c := range []struct {
		name, want string
		picture    []byte
	}{
		{strings.Repeat("ö", 41), "at most 40 characters", nil},
		{"Guide", "would take it for", nil},
		{"gu\u0456de", "would take it for", nil}, // a Cyrillic letter
		{"Ada", "picture", []byte("<svg onload=alert(1)>")},
		{"Ada", "picture", []byte("\x89PNG\r\n\x1a\nbroken")},
		{"Ada", "at most 2 MiB", make([]byte, 2<<20+1)},
	} {
		a := putProfile(t, ada, url.Values{"display_name": {c.name}, "shown": {"yes"}}, c.picture)
		if a.Status < 400 || a.Status >= 500 || !strings.Contains(a.Body, c.want) {
			t.Errorf("%.20q with a picture of %d bytes: %d, not %q", c.name, len(c.picture), a.Status, c.want)
		}
	}
	for _, name := range []string{"nobody", "..", "a%2fb", strings.Repeat("a", 500), "%00"} {
		ada.Must(http.MethodGet, "/api/v1/people/"+name, nil, http.StatusNotFound)
	}
	if got, _ := readPerson(t, ada, "ada"); got.Picture != "" {
		t.Errorf("%+v", got)
	}
}
