package formula

import "strings"

// readPairs makes a table of "name sign name sign ...". The names get their backslash.
func readPairs(pairs string) map[string]string {
	fields := strings.Fields(pairs)
	table := make(map[string]string, len(fields)/2)
	for i := 0; i+1 < len(fields); i += 2 {
		table[`\`+fields[i]] = fields[i+1]
	}
	return table
}

// letters are those of other alphabets that stand for variables.
var letters = readPairs(`alpha α beta β gamma γ delta δ epsilon ϵ varepsilon ε zeta ζ eta η theta θ vartheta ϑ
	iota ι kappa κ varkappa ϰ lambda λ mu μ nu ν xi ξ omicron ο pi π varpi ϖ rho ρ varrho ϱ
	sigma σ varsigma ς tau τ upsilon υ phi ϕ varphi φ chi χ psi ψ omega ω ell ℓ imath ı
	jmath ȷ hbar ℏ hslash ℏ wp ℘`)

// signs stand upright.
var signs = readPairs(`Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Upsilon Υ Phi Φ Psi Ψ Omega Ω
	infty ∞ partial ∂ nabla ∇ emptyset ∅ varnothing ∅ Re ℜ Im ℑ aleph ℵ beth ℶ
	forall ∀ exists ∃ nexists ∄ top ⊤ bot ⊥ angle ∠ measuredangle ∡ triangle △
	square □ Box □ blacksquare ■ qed ∎ diamond ◇ Diamond ◇ clubsuit ♣ heartsuit ♡
	spadesuit ♠ diamondsuit ♢ flat ♭ natural ♮ sharp ♯ degree ° prime ′ backprime ‵
	complement ∁ checkmark ✓ dag † ddag ‡ S § P ¶ pounds £ euro € copyright © circledR ®
	mho ℧ eth ð Finv Ⅎ dagger † ddagger ‡`)

// operators are relations, operators between two formulas, arrows, dots and escaped characters.
var operators = readPairs(`# # $ $ % % & &amp; _ _ pm ± mp ∓ times × div ÷ cdot ⋅ centerdot ⋅ ast ∗ star ⋆
	circ ∘ bullet ∙ cap ∩ cup ∪ uplus ⊎ sqcap ⊓ sqcup ⊔ vee ∨ lor ∨ wedge ∧ land ∧
	setminus ∖ smallsetminus ∖ wr ≀ oplus ⊕ ominus ⊖ otimes ⊗ oslash ⊘ odot ⊙
	bigcirc ◯ amalg ⨿ ltimes ⋉ rtimes ⋊ lnot ¬ neg ¬ leq ≤ le ≤ leqslant ⩽ geq ≥
	ge ≥ geqslant ⩾ ll ≪ gg ≫ lll ⋘ ggg ⋙ neq ≠ ne ≠ equiv ≡ sim ∼ simeq ≃
	approx ≈ approxeq ≊ cong ≅ doteq ≐ propto ∝ varpropto ∝ prec ≺ succ ≻ preceq ⪯
	succeq ⪰ subset ⊂ supset ⊃ subseteq ⊆ supseteq ⊇ subsetneq ⊊ supsetneq ⊋ nsubseteq ⊈
	nsupseteq ⊉ sqsubset ⊏ sqsupset ⊐ sqsubseteq ⊑ sqsupseteq ⊒ in ∈ notin ∉ ni ∋
	owns ∋ mid ∣ nmid ∤ parallel ∥ nparallel ∦ perp ⟂ vdash ⊢ dashv ⊣ models ⊨
	vDash ⊨ Vdash ⊩ asymp ≍ bowtie ⋈ smile ⌣ frown ⌢ coloneqq ≔ coloneq ≔ eqqcolon ≕
	triangleq ≜ lesssim ≲ gtrsim ≳ lessgtr ≶ gtrless ≷ because ∵ therefore ∴ nless ≮
	ngtr ≯ nleq ≰ ngeq ≱ ntriangleleft ⋪ triangleleft ◁ triangleright ▷ trianglelefteq ⊴
	trianglerighteq ⊵ unlhd ⊴ unrhd ⊵ to → rightarrow → gets ← leftarrow ←
	leftrightarrow ↔ Rightarrow ⇒ Leftarrow ⇐ Leftrightarrow ⇔ implies ⟹ impliedby ⟸ iff ⟺
	longrightarrow ⟶ longleftarrow ⟵ longleftrightarrow ⟷ Longrightarrow ⟹ Longleftarrow ⟸
	Longleftrightarrow ⟺ mapsto ↦ longmapsto ⟼ hookrightarrow ↪ hookleftarrow ↩ nearrow ↗
	searrow ↘ swarrow ↙ nwarrow ↖ leadsto ⇝ rightsquigarrow ⇝ rightharpoonup ⇀
	rightharpoondown ⇁ leftharpoonup ↼ leftharpoondown ↽ rightleftharpoons ⇌
	leftrightharpoons ⇋ upharpoonright ↾ restriction ↾ twoheadrightarrow ↠ circlearrowright ↻
	circlearrowleft ↺ nrightarrow ↛ nRightarrow ⇏ dots … ldots … cdots ⋯ dotsc … dotsb ⋯
	dotsm ⋯ dotsi ⋯ dotso … vdots ⋮ ddots ⋱ iddots ⋰ colon : bmod mod mod mod surd √
	boxplus ⊞ boxminus ⊟ boxtimes ⊠ vartriangle △ lhd ⊲ rhd ⊳ multimap ⊸`)

// largeOperators have their limits above and below in displayed formulas, integrals beside them.
var (
	largeOperators = readPairs(`sum ∑ prod ∏ coprod ∐ bigcup ⋃ bigcap ⋂ bigsqcup ⨆ bigoplus ⨁ bigotimes ⨂
	bigodot ⨀ biguplus ⨄ bigvee ⋁ bigwedge ⋀`)
	integrals = readPairs(`int ∫ iint ∬ iiint ∭ oint ∮ oiint ∯ smallint ∫`)
)

// functions are names that stand upright. Those with a star have their limits below.
var functions = readPairs(`sin sin cos cos tan tan cot cot sec sec csc csc arcsin arcsin arccos arccos arctan arctan sinh sinh
	cosh cosh tanh tanh coth coth log log ln ln lg lg exp exp deg deg dim dim hom hom ker ker arg arg
	det *det gcd *gcd lcm *lcm lim *lim limsup *lim\u2009sup liminf *lim\u2009inf max *max min *min
	sup *sup inf *inf Pr *Pr argmax *arg\u2009max argmin *arg\u2009min`)

// fences are delimiters, with the entities of HTML.
var fences = map[string]string{
	"(": "(", ")": ")", "[": "[", "]": "]", "|": "|", "/": "/", "<": "⟨", ">": "⟩", `\{`: "{", `\}`: "}", `\|`: "‖",
	`\lbrace`: "{", `\rbrace`: "}", `\lbrack`: "[", `\rbrack`: "]", `\langle`: "⟨", `\rangle`: "⟩", `\lfloor`: "⌊",
	`\rfloor`: "⌋", `\lceil`: "⌈", `\rceil`: "⌉", `\vert`: "|", `\Vert`: "‖", `\lvert`: "|", `\rvert`: "|",
	`\lVert`: "‖", `\rVert`: "‖", `\backslash`: `\`, `\lparen`: "(", `\rparen`: ")", `\ulcorner`: "⌜", `\urcorner`: "⌝",
	`\uparrow`: "↑", `\downarrow`: "↓", `\updownarrow`: "↕", `\Uparrow`: "⇑", `\Downarrow`: "⇓",
}

// characters are operators of one character that MathML writes in another way or that must be escaped.
var characters = map[string]string{"-": "−", "*": "∗", "<": "&lt;", ">": "&gt;", `"`: "&#34;", "`": "‘"}

var spaces = map[string]string{
	`\,`: "0.167em", `\:`: "0.222em", `\>`: "0.222em", `\;`: "0.278em", `\!`: "-0.167em", `\ `: "0.333em",
	`\quad`: "1em", `\qquad`: "2em", `\thinspace`: "0.167em", `\medspace`: "0.222em", `\thickspace`: "0.278em",
	`\enspace`: "0.5em", `\negthinspace`: "-0.167em",
}

// ignored are commands that change nothing that a message could show.
var ignored = map[string]bool{
	`\nonumber`: true, `\notag`: true, `\hline`: true, `\displaylimits`: true, `\mathstrut`: true, `\strut`: true,
	`\hfill`: true, `\allowbreak`: true, `\nobreak`: true, `\relax`: true, `\normalsize`: true,
}

// styles are the attributes of the commands that change the size of the rest of a group.
var styles = map[string]string{
	`\displaystyle`: `displaystyle="true" scriptlevel="0"`, `\textstyle`: `displaystyle="false" scriptlevel="0"`,
	`\scriptstyle`: `displaystyle="false" scriptlevel="1"`, `\scriptscriptstyle`: `displaystyle="false" scriptlevel="2"`,
}

// infixes are commands between the parts of a fraction.
var infixes = map[string]func(above, below string) string{
	`\over`:   func(above, below string) string { return "<mfrac>" + above + below + "</mfrac>" },
	`\atop`:   func(above, below string) string { return `<mfrac linethickness="0">` + above + below + "</mfrac>" },
	`\choose`: func(above, below string) string { return binomial(above, below, "") },
}

// accent is a sign above or below its argument.
type accent struct {
	sign, stretchy string
	below, limits  bool
}

var accents = map[string]accent{
	`\hat`: {sign: "^", stretchy: "false"}, `\bar`: {sign: "¯", stretchy: "false"}, `\vec`: {sign: "→", stretchy: "false"},
	`\dot`: {sign: "˙", stretchy: "false"}, `\ddot`: {sign: "¨", stretchy: "false"}, `\dddot`: {sign: "⃛", stretchy: "false"},
	`\tilde`: {sign: "~", stretchy: "false"}, `\check`: {sign: "ˇ", stretchy: "false"}, `\breve`: {sign: "˘", stretchy: "false"},
	`\acute`: {sign: "´", stretchy: "false"}, `\grave`: {sign: "&#96;", stretchy: "false"}, `\mathring`: {sign: "˚", stretchy: "false"},
	`\widehat`: {sign: "^", stretchy: "true"}, `\widetilde`: {sign: "~", stretchy: "true"}, `\overline`: {sign: "‾", stretchy: "true"},
	`\overrightarrow`: {sign: "→", stretchy: "true"}, `\overleftarrow`: {sign: "←", stretchy: "true"},
	`\overleftrightarrow`: {sign: "↔", stretchy: "true"}, `\overbrace`: {sign: "⏞", stretchy: "true", limits: true},
	`\underline`: {sign: "_", below: true}, `\underbrace`: {sign: "⏟", below: true, limits: true},
	`\underrightarrow`: {sign: "→", below: true},
}

var arrows = map[string]string{
	`\xrightarrow`: "→", `\xleftarrow`: "←", `\xleftrightarrow`: "↔", `\xRightarrow`: "⇒", `\xLeftarrow`: "⇐",
	`\xmapsto`: "↦", `\xrightleftharpoons`: "⇌", `\xlongequal`: "=",
}

// sizes are the heights of delimiters that are set by hand.
var sizes = map[string]string{
	`\big`: "1.2em", `\bigl`: "1.2em", `\bigr`: "1.2em", `\bigm`: "1.2em", `\Big`: "1.8em", `\Bigl`: "1.8em", `\Bigr`: "1.8em",
	`\Bigm`: "1.8em", `\bigg`: "2.4em", `\biggl`: "2.4em", `\biggr`: "2.4em", `\biggm`: "2.4em", `\Bigg`: "3em",
	`\Biggl`: "3em", `\Biggr`: "3em", `\Biggm`: "3em",
}
