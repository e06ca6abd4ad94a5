package e2e

import (
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/racetest"
)

// A person asks a hosted program for a file, keeps it in the library, and opens it there.
func TestHosted_AFileIsKept(t *testing.T) {
	root := needBrowser(t)
	racetest.Skip(t) // compiling the program takes minutes there
	t.Parallel()
	p := apptest.Start(t, apptest.WithPrograms)
	for name, s := range walked("desk", "phone", "desk without scripts") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ada := p.User(t, apptest.Fresh("ada"))
			b := visit(t, root, p, s).as(ada).checked()
			b.extra = compileTime
			b.open("/chat/" + ada.Conversation("tables"))
			b.send(`[{"tea":"Assam","cups":3},{"tea":"Sencha","cups":40}] select tea, cups where cups > 9 as csv`)
			b.answered("in the file table.csv")
			if !s.scripts {
				b.open(b.path())
			}
			b.until("the file", `Boolean(document.querySelector(".keep button"))`)
			b.shot("hosted-file-"+strings.ReplaceAll(name, " ", "-"), false)
			b.axeHere("the answer with a file")
			b.press(".keep button")
			b.says("Kept in your library.")
			b.open("/library")
			b.says("table.csv")
			b.axeHere("the library")
			b.press(`a[href*="table.csv"]`)
			b.says("Sencha,40")
			b.axeHere("the file")
			if got := ada.Do(http.MethodGet, "/api/v1/library/table.csv", nil).Body; got != "tea,cups\nSencha,40\n" {
				t.Errorf("kept: %q", got)
			}
			b.clean("the pages of the file")
		})
	}
}
