package e2e

import (
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/pdftest"
	"agentsite/internal/testing/racetest"
)

// A person uploads a PDF file, finds it by a word on its second page, and reads its text.
func TestLibrary_FindsAPDF(t *testing.T) {
	root := needBrowser(t)
	racetest.Skip(t) // compiling the reader takes minutes there
	t.Parallel()
	p := apptest.Start(t)
	for name, s := range walked("desk", "phone", "desk without scripts") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := visit(t, root, p, s).as(p.User(t, apptest.Fresh("ada"))).checked()
			b.extra = compileTime
			b.open("/library")
			b.upload("#file", "flight.pdf", pdftest.File("Invoice 4711", "Balloon flight over the harbour"))
			b.press(`form[action="/library/upload"] button`)
			b.says("flight.pdf")
			b.open("/library?q=balloon")
			b.says("flight.pdf")
			b.axeHere("the file that was found")
			b.press(`a[href*="flight.pdf"]`)
			b.press(`a[href*="text=1"]`)
			b.says("Balloon flight over the harbour")
			b.shot("library-pdf-"+strings.ReplaceAll(name, " ", "-"), true)
			b.axeHere("the text of a PDF file")
			b.clean("the pages of the PDF file")
		})
	}
}
