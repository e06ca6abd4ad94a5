package formula

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// mathOf converts a formula and returns the elements before its annotation.
func mathOf(t testing.TB, source string) string {
	t.Helper()
	got, ok := Convert(source, false, source)
	if !ok {
		return "refused"
	}
	inner, ok := strings.CutPrefix(got, "<math><semantics><mrow>")
	inner, _, found := strings.Cut(inner, "</mrow><annotation ")
	if !ok || !found {
		t.Fatalf("%s became %s", source, got)
	}
	return inner
}

func TestConvert_KnowsCommands(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"a_1 + b^2", "<msub><mi>a</mi><mn>1</mn></msub><mo>+</mo><msup><mi>b</mi><mn>2</mn></msup>"},
		{"x^23", "<msup><mi>x</mi><mn>2</mn></msup><mn>3</mn>"},
		{"x_i^{2n}", "<msubsup><mi>x</mi><mrow><mi>i</mi></mrow><mrow><mn>2</mn><mi>n</mi></mrow></msubsup>"},
		{"f''(x)", `<msup><mi>f</mi><mo>′′</mo></msup><mo stretchy="false">(</mo><mi>x</mi><mo stretchy="false">)</mo>`},
		{"f'^2", "<msup><mi>f</mi><mrow><mo>′</mo><mn>2</mn></mrow></msup>"},
		{`\frac12`, "<mfrac><mn>1</mn><mn>2</mn></mfrac>"},
		{`\dfrac{a}{b}`, `<mfrac displaystyle="true"><mrow><mi>a</mi></mrow><mrow><mi>b</mi></mrow></mfrac>`},
		{`{a \over b}`, "<mrow><mfrac><mrow><mi>a</mi></mrow><mrow><mi>b</mi></mrow></mfrac></mrow>"},
		{`\binom n k`, `<mrow><mo fence="true">(</mo><mfrac linethickness="0"><mrow><mi>n</mi></mrow><mrow><mi>k</mi></mrow></mfrac><mo fence="true">)</mo></mrow>`},
		{`\sqrt[3]{x}`, "<mroot><mrow><mi>x</mi></mrow><mrow><mn>3</mn></mrow></mroot>"},
		{`\sum_{i=1}^n i`, `<munderover><mo largeop="true" movablelimits="true">∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mrow><mi>n</mi></mrow></munderover><mi>i</mi>`},
		{`\sum\limits_i`, `<munder><mo largeop="true" movablelimits="false">∑</mo><mrow><mi>i</mi></mrow></munder>`},
		{`\int_0^1`, `<msubsup><mo largeop="true">∫</mo><mn>0</mn><mn>1</mn></msubsup>`},
		{`\sin x`, `<mo lspace="0.167em" rspace="0.167em" movablelimits="true">sin</mo><mi>x</mi>`},
		{`\lim_{x \to 0}`, `<munder><mo lspace="0.167em" rspace="0" movablelimits="true">lim</mo><mrow><mi>x</mi><mo>→</mo><mn>0</mn></mrow></munder>`},
		{`\left( x \right.`, `<mrow><mo fence="true" stretchy="true" form="prefix">(</mo><mi>x</mi></mrow>`},
		{"[0,1)", `<mo stretchy="false">[</mo><mn>0</mn><mo>,</mo><mn>1</mn><mo stretchy="false">)</mo>`},
		{"a<b-c", "<mi>a</mi><mo>&lt;</mo><mi>b</mi><mo>−</mo><mi>c</mi>"},
		{`\mathbb{R}, \mathcal L`, `<mrow><mi mathvariant="normal">ℝ</mi></mrow><mo>,</mo><mrow><mi mathvariant="normal">ℒ</mi></mrow>`},
		{`\mathbf{x1}`, `<mrow><mi mathvariant="normal">𝐱</mi><mn>𝟏</mn></mrow>`},
		{`\text{if } x`, "<mtext>if\u00a0</mtext><mi>x</mi>"},
		{`\text{<b>\_}`, "<mtext>&lt;b&gt;_</mtext>"},
		{`\hat x`, `<mover accent="true"><mrow><mi>x</mi></mrow><mo stretchy="false">^</mo></mover>`},
		{`\not=`, "<mo>=\u0338</mo>"},
		{`\Gamma\alpha`, `<mi mathvariant="normal">Γ</mi><mi>α</mi>`},
		{`50\%`, "<mn>50</mn><mo>%</mo>"},
		{"3.14.", "<mn>3.14</mn><mo>.</mo>"},
		{`\begin{pmatrix} 1 & 0 \\ 0 & 1 \end{pmatrix}`, `<mrow><mo fence="true" stretchy="true" form="prefix">(</mo><mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>0</mn></mtd></mtr><mtr><mtd><mn>0</mn></mtd><mtd><mn>1</mn></mtd></mtr></mtable><mo fence="true" stretchy="true" form="postfix">)</mo></mrow>`},
		{`\begin{aligned} a &= b \\[1ex] c &= d \\ \end{aligned}`, `<mrow><mtable displaystyle="true"><mtr><mtd class="math-right"><mi>a</mi></mtd><mtd class="math-left"><mo>=</mo><mi>b</mi></mtd></mtr><mtr><mtd class="math-right"><mi>c</mi></mtd><mtd class="math-left"><mo>=</mo><mi>d</mi></mtd></mtr></mtable></mrow>`},
		{`\displaystyle\int f`, `<mstyle displaystyle="true" scriptlevel="0"><mo largeop="true">∫</mo><mi>f</mi></mstyle>`},
		{`\xrightarrow[a]{b}`, `<munderover><mo stretchy="true">→</mo><mrow><mi>a</mi></mrow><mrow><mi>b</mi></mrow></munderover>`},
		{`\textcolor{red}{x}`, "<mrow><mi>x</mi></mrow>"},
		{"重 é", "<mi>重</mi><mi>é</mi>"},
	} {
		if got := mathOf(t, c.source); got != c.want {
			t.Errorf("%s became\n%s\nwant\n%s", c.source, got, c.want)
		}
	}
}

// TestConvert_TakesFormulasOfModels has formulas as language models write them: all are converted.
func TestConvert_TakesFormulasOfModels(t *testing.T) {
	for _, source := range []string{
		`x = \frac{-b \pm \sqrt{b^2 - 4ac}}{2a}`,
		`e^{i\pi} + 1 = 0`,
		`\int_{-\infty}^{\infty} e^{-x^2} \, dx = \sqrt{\pi}`,
		`f(x) = \begin{cases} x^2, & \text{if } x \ge 0 \\ -x, & \text{otherwise} \end{cases}`,
		`\nabla \times \mathbf{E} = -\frac{\partial \mathbf{B}}{\partial t}`,
		`P(A \mid B) = \frac{P(B \mid A)\, P(A)}{P(B)}`,
		`\hat{\beta} = (X^\top X)^{-1} X^\top y`,
		`\operatorname{softmax}(z_i) = \frac{e^{z_i}}{\sum_{j=1}^{K} e^{z_j}}`,
		`\mathcal{L}(\theta) = -\frac{1}{N}\sum_{i=1}^{N} \left[ y_i \log \hat{y}_i + (1-y_i)\log(1-\hat{y}_i) \right]`,
		`\operatorname*{arg\,max}_{\theta} p(x \mid \theta)`,
		`\left\| \frac{a}{b} \right\|_2 \leq \bigl( \lambda_{\max} \bigr)^{1/2}`,
		`\underbrace{a + b}_{\text{sum}} \overset{!}{=} c \quad\text{for all } n \in \mathbb{N}`,
		`\begin{align*} a &= b + c \tag{1} \\ &\approx 3.14 \end{align*}`,
		`\boxed{42} \implies O(n \log n) \ll 2^n`,
		`\left.\frac{d}{dx}\right|_{x=0} f(x) = f'(0)`,
		`\prod_{\substack{p \le n \\ p \text{ prime}}} p \equiv 1 \pmod{m}`,
		`\begin{array}{c|cc} & a & b \\ \hline x & 1 & 2 \end{array}`,
		`A = \begin{bmatrix} a_{11} & \cdots & a_{1n} \\ \vdots & \ddots & \vdots \\ a_{m1} & \cdots & a_{mn} \end{bmatrix}`,
		`\langle \psi | \hat{H} | \psi \rangle = E_0, \; \hbar\omega \neq 0`,
		`\lim_{n\to\infty}\left(1+\frac1n\right)^n = e`,
	} {
		if mathOf(t, source) == "refused" {
			t.Errorf("%s is refused", source)
		}
	}
}

func TestConvert_RefusesOthers(t *testing.T) {
	for _, source := range []string{
		"", " ", `\nonumber`, "{", "}", "a}", `\frac1`, `\frac`, "x^", "x^1^2", "x_1_2", `\left(`, `\right)`, `\left(x\right`,
		"a & b", `a \\ b`, `\begin{matrix} 1`, `\begin{matrix} 1 \end{pmatrix}`, `\begin{evil} \end{evil}`, `\end{matrix}`,
		`\def\a{\a}\a`, `\newcommand{\a}{\a\a}\a`, `\href{javascript:x}{y}`, `\url{x}`, `\includegraphics{x}`, `\input{/etc/passwd}`,
		`\style{color:red}{x}`, `\class{a}{x}`, `\unknown`, `\`, `\text{a`, `\text{\frac12}`, `\not x`, `\not`, "a\x00", "a\xff",
		strings.Repeat("{", 100) + strings.Repeat("}", 100), strings.Repeat(`\sqrt`, 100) + "x", strings.Repeat(`\not`, 100) + "=",
		strings.Repeat(`\left(`, 100) + strings.Repeat(`\right)`, 100), strings.Repeat("x", MaxBytes+1),
		strings.Repeat(`\begin{matrix}`, 60) + strings.Repeat(`\end{matrix}`, 60), strings.Repeat(`a\over `, 200) + "b",
	} {
		if got, ok := Convert(source, true, source); ok {
			t.Errorf("%.60q became %s", source, got)
		}
	}
}

// elements and attributes are all that a formula may have.
var (
	elements   = strings.Fields("math semantics annotation mrow mi mn mo mtext mspace msub msup msubsup munder mover munderover mfrac msqrt mroot mstyle mphantom mtable mtr mtd")
	attributes = strings.Fields("display encoding mathvariant stretchy fence form lspace rspace movablelimits largeop minsize maxsize accent accentunder linethickness displaystyle scriptlevel width class")
)

// checkMath fails unless markup is one math element with only the elements and attributes of formulas, and the source
// as its annotation.
func checkMath(t testing.TB, source, markup string) {
	t.Helper()
	list, err := html.ParseFragment(strings.NewReader(markup), &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div})
	if err != nil || len(list) != 1 || list[0].Data != "math" {
		t.Fatalf("%q became %s: %v", source, markup, err)
	}
	for n := range list[0].Descendants() {
		if n.Type == html.ElementNode && (n.Namespace != "math" || !strings.Contains(" "+strings.Join(elements, " ")+" ", " "+n.Data+" ")) {
			t.Errorf("%q: element %s of %q", source, n.Data, n.Namespace)
		}
		if n.Type == html.CommentNode || n.Type == html.DoctypeNode {
			t.Errorf("%q: a comment", source)
		}
		for _, a := range n.Attr {
			if !strings.Contains(" "+strings.Join(attributes, " ")+" ", " "+a.Key+" ") || strings.ContainsAny(a.Val, ":/&") && a.Key != "encoding" {
				t.Errorf("%q: %s=%q of %s", source, a.Key, a.Val, n.Data)
			}
		}
		if n.Data == "annotation" && n.Type == html.ElementNode && n.FirstChild.Data != source {
			t.Errorf("%q has the annotation %q", source, n.FirstChild.Data)
		}
	}
}

func TestConvert_EscapesEverything(t *testing.T) {
	for _, source := range []string{
		`<script>alert(1)</script>`, `\text{</mtext></math><img src=x onerror=alert(1)>}`, `"onclick="x`, `\operatorname{<img>}`,
		`\tag{<b>}`, `a\text{&lt;}b`, `\textbf{&lt;<&}`, "`x`", `x<!--y-->z`, `\text{</annotation>}`, "'<'",
	} {
		if got, ok := Convert(source, false, source); ok {
			checkMath(t, source, got)
		}
	}
}

// TestConvert_IsBounded has the formulas with the largest results.
func TestConvert_IsBounded(t *testing.T) {
	for _, unit := range []string{"{}", "x", "x_1", `\!`, "''", "&", `\big(`, `\binom12`, `\sum`} {
		source := strings.Repeat(unit, MaxBytes/len(unit))
		if unit == "&" {
			source = `\begin{matrix}` + source[:MaxBytes-30] + `\end{matrix}`
		}
		got, _ := Convert(source, true, source)
		if len(got) > 80*MaxBytes {
			t.Errorf("%s: %d bytes became %d", unit, len(source), len(got))
		}
		allocs := testing.AllocsPerRun(1, func() { Convert(source, true, source) })
		if allocs > 20*MaxBytes {
			t.Errorf("%s takes %v allocations", unit, allocs)
		}
	}
}

func FuzzConvert(f *testing.F) {
	for _, s := range []string{`\frac{a}{b}`, `\begin{cases} a & b \\ c \end{cases}`, `\left[\sqrt[n]{x}\right)`, `\text{a <b> \_}`, `x'^2_3\limits`, `\not\in\mathbb R\rm d`, `a \over \displaystyle b \choose c`, `\operatorname*{x}_a`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		got, ok := Convert(source, len(source)%2 == 0, source)
		if !ok {
			return
		}
		if strings.ContainsAny(source, "\x00\r\f") {
			return // which HTML changes; the renderer of messages takes them out
		}
		checkMath(t, source, got)
		if len(got) > 100*(len(source)+10) {
			t.Errorf("%d bytes became %d", len(source), len(got))
		}
	})
}

func ExampleConvert() {
	fmt.Println(Convert("x^2", false, "$x^2$"))
	// Output: <math><semantics><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow><annotation encoding="application/x-tex">$x^2$</annotation></semantics></math> true
}
