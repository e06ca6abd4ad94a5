package markup

// String literals that many languages have.
var (
	double       = quote{open: `"`, esc: '\\'}
	single       = quote{open: `'`, esc: '\\'}
	tripleDouble = quote{open: `"""`, esc: '\\', lines: true}
	tripleSingle = quote{open: `'''`, esc: '\\', lines: true}
	longDouble   = quote{open: `"`, esc: '\\', lines: true}
	longSingle   = quote{open: `'`, esc: '\\', lines: true}
	bareSingle   = quote{open: `'`}
	char         = quote{open: `'`, char: true}
)

const (
	cWords = `auto bool break case char const continue default do double else enum extern false float for goto if
		inline int long register restrict return short signed sizeof static struct switch true typedef union unsigned
		void volatile while
		NULL nullptr _Bool _Atomic _Static_assert static_assert alignas alignof constexpr thread_local typeof size_t
		ssize_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t`
	scriptWords = `abstract as async await break case catch class const continue debugger default delete do else enum
		export extends false finally for function if implements import in instanceof interface let new null
		private protected public readonly return static super switch this throw true try typeof undefined var void
		while with yield satisfies keyof NaN Infinity`
)

// grammars are the highlighted languages. Code in other languages has no colours. A test needs a sample
// of each language in testdata/colours.
var grammars = []grammar{
	{names: "go golang", lines: "//", blocks: "/* */", quotes: []quote{double, {open: "`", lines: true}, single},
		keywords: `break case chan const continue default defer else fallthrough for func go goto if import interface
			map package range return select struct switch type var true false nil iota
			any bool byte comparable complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune string
			uint uint8 uint16 uint32 uint64 uintptr`},
	{names: "c h", with: hashLines, lines: "//", blocks: "/* */", quotes: []quote{double, single}, prefixes: "L u U u8",
		digits: "'", keywords: cWords},
	{names: "c++ cpp cc cxx hpp", with: hashLines | delimited, lines: "//", blocks: "/* */",
		quotes: []quote{double, single}, prefixes: "L u U u8 R LR uR UR u8R", digits: "'",
		keywords: cWords + ` and asm bitand bitor catch char8_t char16_t char32_t class co_await co_return co_yield
			concept const_cast consteval constinit decltype delete dynamic_cast explicit export friend mutable
			namespace new noexcept not operator or
			private protected public reinterpret_cast requires static_cast template this throw try typeid typename
			using virtual wchar_t xor override`, softs: "final import module"},
	{names: "objective-c objc objectivec", with: hashLines, lines: "//", blocks: "/* */",
		quotes: []quote{{open: `@"`, close: `"`, esc: '\\'}, double, single}, sigils: "@",
		keywords: cWords + ` @interface @implementation @end @property @protocol @class @selector @synthesize @dynamic
			@import @autoreleasepool @try @catch @finally @throw @optional @required @public @private @protected
			@synchronized
			id nil Nil YES NO BOOL instancetype self super SEL IMP nonatomic strong weak copy`},
	{names: "csharp c# cs", with: hashLines, lines: "//", blocks: "/* */",
		quotes: []quote{{open: `$@"`, close: `"`, doubled: true, lines: true, into: "{"},
			{open: `@$"`, close: `"`, doubled: true, lines: true, into: "{"},
			{open: `@"`, close: `"`, doubled: true, lines: true},
			{open: `$"""`, close: `"""`, lines: true, into: "{"}, {open: `$"`, close: `"`, esc: '\\', into: "{"},
			{open: `"""`, lines: true}, double, single},
		keywords: `abstract as async await base bool break byte case catch char checked class const continue decimal
			default delegate do double else enum event explicit extern false finally fixed float for foreach goto if
			implicit in int interface internal is
			lock long namespace new null object operator out override params private protected public readonly ref
			return sbyte sealed short sizeof stackalloc static string struct switch this throw true try typeof uint
			ulong unchecked unsafe ushort using virtual void
			volatile while yield var dynamic nint`,
		softs: "record required init when where get set global partial not and or select from let join orderby with"},
	{names: "java", lines: "//", blocks: "/* */", quotes: []quote{tripleDouble, double, single}, sigils: "@",
		keywords: `abstract assert boolean break byte case catch char class const continue default do double else enum
			extends final finally float for goto if implements import instanceof int interface long native new null
			package private protected public return
			short static strictfp super switch synchronized this throw throws transient true false try var void
			volatile while @interface`, softs: "record sealed permits yield when module requires exports opens"},
	{names: "kotlin kt kts", with: nested, lines: "//", blocks: "/* */",
		quotes: []quote{{open: `"""`, lines: true, into: "${", vars: true},
			{open: `"`, esc: '\\', into: "${", vars: true}, single}, sigils: "@",
		keywords: `abstract actual annotation as break by catch class companion const constructor continue crossinline
			data do else enum expect external false final finally for fun if import in infix init inline inner
			interface internal is lateinit noinline null
			object open operator out override package private protected public reified return sealed super suspend
			tailrec this throw true try typealias val var vararg when where while`},
	{names: "scala sc", with: nested, lines: "//", blocks: "/* */",
		quotes: []quote{{open: `"""`, lines: true, into: "${", vars: true},
			{open: `"`, esc: '\\', into: "${", vars: true}, char}, prefixes: "s f raw", formats: "s f raw", sigils: "@",
		keywords: `abstract case catch class def do else enum export extends false final finally for forSome given if
			implicit import lazy match new null object override package private protected return sealed super then
			this throw trait try true type val var while with yield`,
		softs: "extension using inline opaque derives end"},
	{names: "groovy gradle", with: slashes, lines: "//", blocks: "/* */",
		quotes: []quote{{open: `"""`, esc: '\\', lines: true, into: "${", vars: true}, tripleSingle,
			{open: `"`, esc: '\\', into: "${", vars: true}, single}, sigils: "@",
		keywords: `abstract as assert boolean break byte case catch char class const continue def default do double
			else enum extends false final finally float for goto if implements import in instanceof int interface long
			native new null package private
			protected public return short static super switch synchronized this throw throws trait transient true try
			var void volatile while`},
	{names: "javascript js jsx mjs cjs", with: slashes | tags, lines: "// #!", blocks: "/* */",
		quotes: []quote{double, single, {open: "`", esc: '\\', lines: true, into: "${"}}, starts: "$", parts: "$",
		sigils: "@", keywords: scriptWords, softs: "of from get set"},
	{names: "typescript ts tsx", with: slashes | tags, lines: "// #!", blocks: "/* */",
		quotes: []quote{double, single, {open: "`", esc: '\\', lines: true, into: "${"}}, starts: "$", parts: "$",
		sigils:   "@",
		keywords: scriptWords + ` any bigint boolean never number string symbol unknown`,
		softs:    "of from get set type namespace module declare is infer asserts global override out object"},
	{names: "dart", with: nested, lines: "//", blocks: "/* */",
		quotes: []quote{{open: `"""`, esc: '\\', lines: true, into: "${", vars: true},
			{open: `'''`, esc: '\\', lines: true, into: "${", vars: true},
			{open: `"`, esc: '\\', into: "${", vars: true}, {open: `'`, esc: '\\', into: "${", vars: true}},
		prefixes: "r", raws: "r", sigils: "@",
		keywords: `abstract as assert async await base bool break case catch class const continue covariant default
			deferred do double dynamic else enum export extends extension external factory false final finally for get
			if implements import in int interface is
			late library mixin new null num operator part required rethrow return sealed set show static super switch
			sync this throw true try typedef var void when while with yield Function Never Object String`},
	{names: "rust rs", with: nested | attributes | bangs | lifetimes | capitals, lines: "//", blocks: "/* */",
		quotes: []quote{{open: `##"`, close: `"##`, lines: true}, {open: `#"`, close: `"#`, lines: true}, longDouble,
			char}, prefixes: "r b br c cr", raws: "r br cr",
		keywords: `as async await break const continue crate dyn else enum extern false fn for if impl in let loop
			match mod move mut pub ref return self Self static struct super trait true type unsafe use where while yield
			bool char f32 f64 i8 i16 i32 i64 i128 isize macro_rules str u8 u16 u32 u64 u128 usize`, softs: "union"},
	{names: "zig", lines: "//", quotes: []quote{{open: `\\`, close: "\n"}, double, single}, sigils: "@",
		keywords: `addrspace align allowzero and anyframe anytype asm async await break callconv catch comptime const
			continue defer else enum errdefer error export extern false fn for if inline linksection noalias noinline
			nosuspend null opaque or orelse packed
			pub resume return struct suspend switch test threadlocal true try undefined union unreachable
			usingnamespace var volatile while bool void type anyerror noreturn isize usize i8 i16 i32 i64 i128 u8 u16
			u32 u64 u128 f16 f32 f64 f128`},
	{names: "swift", with: nested, lines: "//", blocks: "/* */",
		quotes: []quote{{open: `#"`, close: `"#`}, {open: `"""`, esc: '\\', lines: true, into: `\(`},
			{open: `"`, esc: '\\', into: `\(`}}, sigils: "@",
		keywords: `actor any as associatedtype async await break case catch class continue convenience default defer
			deinit do else enum extension fallthrough false fileprivate final for func guard if import in indirect
			init inout internal is lazy let
			mutating nil nonisolated open operator optional override private protocol public repeat required rethrows
			return self Self some static struct subscript super switch throw throws true try typealias unowned var
			weak where while`},
	{names: "python py python3", lines: "#", quotes: []quote{{open: `"""`, esc: '\\', lines: true, into: "{"},
		{open: `'''`, esc: '\\', lines: true, into: "{"}, {open: `"`, esc: '\\', into: "{"},
		{open: `'`, esc: '\\', into: "{"}},
		prefixes: "r R u U b B f F t T br bR Br BR rb rB Rb RB fr fR Fr FR rf rF Rf RF",
		formats:  "f F t T fr fR Fr FR rf rF Rf RF", sigils: "@",
		keywords: `False None True and as assert async await break class continue def del elif else except finally for
			from global if import in is lambda nonlocal not or pass raise return try while with yield`,
		softs: "match case type", known: "self cls int str float bool list dict set tuple bytes object Exception __name__ __init__"},
	{names: "ruby rb", with: slashes | symbols | percents | tight, lines: "#", blocks: "=begin =end",
		quotes: []quote{{open: `"`, esc: '\\', lines: true, into: "#{"}, longSingle,
			{open: "`", esc: '\\', into: "#{"}}, parts: "?!", sigils: "@$", special: "!@&~0123456789_/:;", keys: ":",
		keywords: `BEGIN END alias and begin break case class def defined? do else elsif end ensure false for if in
			module next nil not or redo rescue retry return self super then true undef unless until when while yield
			require require_relative include extend attr_reader attr_writer attr_accessor raise private protected
			public puts lambda proc`},
	{names: "elixir ex exs", with: symbols | percents | capitals | tight, lines: "#",
		quotes: []quote{{open: `"""`, esc: '\\', lines: true, into: "#{"}, tripleSingle,
			{open: `"`, esc: '\\', lines: true, into: "#{"}, single}, parts: "?!", sigils: "@", keys: ":",
		keywords: `after alias and catch case cond def defp defmodule defstruct defimpl defprotocol defmacro defmacrop
			defguard defdelegate defexception do else end false fn for if import in nil not or quote raise receive
			require rescue reraise true try unless unquote
			use when with`},
	{names: "erlang erl", with: capitals, lines: "%", quotes: []quote{longDouble, single}, starts: "?", parts: "@",
		digits: "#", keywords: "after and andalso band begin bnot bor bsl bsr bxor case catch div else end fun if let maybe not of or orelse receive rem try when xor true false undefined"},
	{names: "php", with: attributes | inPages, lines: "// #", blocks: "/* */",
		quotes: []quote{{open: `"`, esc: '\\', lines: true, into: "{$", vars: true}, longSingle}, sigils: "$",
		keywords: `abstract and array as break callable case catch class clone const continue declare default do echo
			else elseif enddeclare endfor endforeach endif endswitch endwhile enum exit extends final finally fn for
			foreach function global goto if
			implements include include_once instanceof insteadof interface isset list match namespace new or print
			private protected public readonly require require_once return static switch throw trait try unset use var
			while xor yield
			true false null TRUE FALSE NULL self parent bool float int mixed never object string void iterable`},
	{names: "perl pl", with: slashes | perlOps, lines: "#", blocks: "=pod =cut =head =cut",
		quotes: []quote{{open: `"`, esc: '\\', lines: true, vars: true, into: "@{["}, longSingle}, sigils: "$@%&",
		brackets: "{", special: "_&0123456789!@/\\,;.$#",
		keywords: `and cmp continue die do each else elsif eq exists foreach for ge grep gt if keys last le local lt
			map my ne next no not or our package print printf push redo require return say shift sort split sub undef
			unless until unshift use values wantarray warn
			while x xor delete defined BEGIN END __PACKAGE__`},
	{names: "lua", lines: "--", blocks: "--[[ ]] --[=[ ]=] --[==[ ]==]",
		quotes: []quote{double, single, {open: "[[", close: "]]", lines: true},
			{open: "[=[", close: "]=]", lines: true}},
		keywords: "and break do else elseif end false for function goto if in local nil not or repeat return then true until while", known: "self"},
	{names: "r", lines: "#", quotes: []quote{longDouble, longSingle, {open: "`"}}, parts: ".",
		keywords: "break else FALSE for function if in Inf NA NaN next NULL repeat return TRUE while library require T F"},
	{names: "julia jl", with: nested | symbols, lines: "#", blocks: "#= =#",
		quotes: []quote{{open: `"""`, esc: '\\', lines: true, into: "$(", vars: true},
			{open: `"`, esc: '\\', lines: true, into: "$(", vars: true}, {open: "`", esc: '\\'},
			{open: `'`, esc: '\\', apart: true}},
		prefixes: "r b raw v L", parts: "!", sigils: "@",
		keywords: `abstract baremodule begin break catch const continue do else elseif end export false finally for
			function global if import in isa let local macro missing module mutable nothing primitive quote return
			struct true try using where while`,
		known: "Int Int64 Float64 String Bool Vector Matrix Any"},
	{names: "matlab octave", lines: "% #", blocks: "%{ %}",
		quotes:   []quote{{open: `"`, doubled: true}, {open: `'`, doubled: true, apart: true}},
		keywords: "break case catch classdef continue else elseif end endfunction endif endfor endwhile for function global if methods otherwise parfor persistent properties return switch try while true false"},
	{names: "haskell hs", with: nested | capitals, lines: "--", blocks: "{- -}", quotes: []quote{double, char},
		parts: "'", keywords: "as case class data default deriving do else family forall foreign hiding if import in infix infixl infixr instance let module newtype of otherwise qualified then type where"},
	{names: "elm", with: nested | capitals, lines: "--", blocks: "{- -}", quotes: []quote{tripleDouble, double, char},
		keywords: "alias as case else exposing if import in let module of port then type where"},
	{names: "ocaml ml", with: nested | capitals, blocks: "(* *)", quotes: []quote{longDouble, char}, parts: "'",
		keywords: `and as assert begin class constraint do done downto else end exception external false for fun
			function functor if in include inherit initializer lazy let match method module mutable new nonrec object
			of open or private rec sig struct then to true
			try type val virtual when while with int float string bool unit list option array char`},
	{names: "fsharp f# fs", with: nested | hashLines, lines: "//", blocks: "(* *)",
		quotes: []quote{{open: `$"""`, close: `"""`, lines: true, into: "{"}, {open: `"""`, lines: true},
			{open: `$"`, close: `"`, esc: '\\', into: "{"}, {open: `@"`, close: `"`, doubled: true, lines: true},
			longDouble, char}, parts: "'",
		keywords: `abstract and as assert async base begin class default delegate do done downcast downto elif else
			end exception extern false finally fixed for fun function global if in inherit inline interface internal
			lazy let match member module mutable namespace
			new not null of open or override private public rec return sig static struct then to true try type upcast
			use val void when while with yield int float string bool unit list option array seq`},
	{names: "clojure clj cljs edn", with: lispLike | symbols, lines: ";", quotes: []quote{longDouble},
		starts: "-+*/!?<>=.&%$", parts: "-+*/!?<>=.&%$'#:",
		keywords: `def defn defn- defmacro defmulti defmethod defonce defprotocol defrecord deftype do fn for if
			if-let if-not let letfn loop recur ns when when-let when-not cond condp case catch try throw finally quote
			var new binding doseq dotimes require import use true false nil -> ->>`},
	{names: "lisp common-lisp elisp emacs-lisp scheme racket", with: lispLike | symbols | nested, lines: ";",
		blocks: "#| |#", quotes: []quote{longDouble}, starts: "-+*/!?<>=.&%$", parts: "-+*/!?<>=.&%$:",
		keywords: `defun defmacro defvar defparameter defconst defcustom defclass defgeneric defmethod defstruct
			defpackage in-package define define-syntax lambda let let* letrec flet labels if cond case when unless do
			dolist dotimes loop progn begin setq setf set! quote
			and or not return return-from require provide interactive error nil t else`},
	{names: "bash sh shell zsh ksh", with: commentsApart | tight, lines: "#",
		quotes: []quote{{open: `$'`, close: `'`, esc: '\\', lines: true},
			{open: `"`, esc: '\\', lines: true, into: "$( ${", vars: true}, {open: `'`, lines: true},
			{open: "`", esc: '\\', lines: true, into: "$("}},
		parts: "-./:@+~", glue: "-/:@=+~%", sigils: "$", brackets: "{", special: "?#@!*$0123456789-", keys: "= +=",
		keywords: "break case continue do done elif else esac fi for function if in return select then time until while export local readonly declare typeset",
		known:    "alias cat cd chmod cp curl echo eval exec exit false grep kill mkdir mv printf pwd read rm sed set shift source sudo test trap true type ulimit umask unset wait"},
	{names: "fish", with: commentsApart, lines: "#",
		quotes: []quote{{open: `"`, esc: '\\', lines: true, vars: true, into: "$("}, longSingle}, parts: "-./:@+~",
		glue: "-/:@=+~%", sigils: "$",
		keywords: "and begin break builtin case command continue else end for function if in not or return set switch while", known: "alias cat cd echo eval exec exit false grep math mkdir mv printf read rm sed source string sudo test true type"},
	{names: "powershell ps1 pwsh", with: folded, lines: "#", blocks: "<# #>",
		quotes: []quote{{open: `@"`, close: `"@`, lines: true, into: "$(", vars: true},
			{open: `@'`, close: `'@`, lines: true},
			{open: `"`, esc: '`', doubled: true, lines: true, into: "$(", vars: true},
			{open: `'`, doubled: true, lines: true}},
		parts: "-", glue: "-", sigils: "$", brackets: "{", special: "_?$^",
		keywords: "begin break catch class continue data do dynamicparam else elseif end enum exit filter finally for foreach from function if in param process return switch throw trap try until using while", known: "write-host write-output get-childitem get-content set-content where-object foreach-object select-object get-process new-item remove-item"},
	{names: "sql postgresql postgres psql mysql sqlite plpgsql", with: folded, lines: "--", blocks: "/* */",
		quotes:   []quote{{open: `'`, doubled: true, lines: true}, {open: `"`, doubled: true}, {open: "`"}},
		prefixes: "E e N n X x B b", sigils: "$@", special: "0123456789",
		keywords: `add all alter analyze and any as asc autoincrement before begin between bigint bigserial blob bool
			boolean by bytea cascade case cast char character check collate column commit conflict constraint create
			cross current_date current_time
			current_timestamp database date decimal declare default delete desc distinct do double drop each else end
			except exists explain false fetch first float following for foreign from full function generated glob
			group having if ilike immediate in index inner insert
			instead int integer intersect interval into is isnull join json jsonb key last lateral left like limit
			materialized natural no not nothing notnull null nulls numeric offset on only or order outer over
			partition pragma preceding precision primary procedure
			range real recursive references rename replace restrict returning returns right rollback row rows
			savepoint schema select serial set smallint some strict table temp temporary text then time timestamp
			timestamptz to transaction trigger true truncate
			unbounded union unique update using uuid vacuum values varchar varying view virtual volatile when where
			window with without return language declare raise elsif loop`},
	{names: "graphql gql", with: capitals, lines: "#", quotes: []quote{{open: `"""`, lines: true}, double},
		sigils: "$@", keys: ":", keywords: "directive enum extend fragment implements input interface mutation on query repeatable scalar schema subscription type union true false null"},
	{names: "protobuf proto", lines: "//", blocks: "/* */", quotes: []quote{double, single},
		keywords: `syntax edition import weak public package option message enum service rpc returns stream extend
			extensions reserved oneof map repeated optional required group to max true false
			double float int32 int64 uint32 uint64 sint32 sint64 fixed32 fixed64 sfixed32 sfixed64 bool string bytes`},
	{names: "hcl terraform tf", lines: "# //", blocks: "/* */", quotes: []quote{{open: `"`, esc: '\\', into: "${"}},
		parts: "-", keys: "=", keywords: "data dynamic else endfor endif false for if in locals module null output provider provisioner resource terraform true variable"},
	{names: "nix", lines: "#", blocks: "/* */",
		quotes: []quote{{open: "''", lines: true, into: "${"}, {open: `"`, esc: '\\', lines: true, into: "${"}},
		parts:  "-'", keys: "=", keywords: "assert else false if import in inherit let null or rec then throw true with abort builtins"},
	{names: "cmake", with: folded, lines: "#", blocks: "#[[ ]]",
		quotes: []quote{{open: `"`, esc: '\\', lines: true, into: "${", vars: true}}, parts: "-", sigils: "$",
		brackets: "{", keywords: "break continue else elseif endforeach endfunction endif endmacro endwhile foreach function if include macro return while and or not on off true false"},
	{names: "make makefile mk", with: keysFirst | recipes, lines: "#",
		quotes: []quote{{open: `"`, esc: '\\', vars: true}, bareSingle}, starts: ".%", parts: "-./%", glue: "-/",
		sigils: "$", brackets: "({", special: "@<^?*%+$|", keys: ": = ?= +=",
		keywords: "define else endef endif export ifdef ifeq ifndef ifneq include override private undefine unexport vpath"},
	{names: "docker dockerfile containerfile", with: commentsFirst | tight, lines: "#",
		quotes: []quote{{open: `"`, esc: '\\', vars: true}, bareSingle}, parts: "-./:@+~", glue: "-/:@=+~", sigils: "$",
		brackets: "{", keys: "=", keywords: "ADD ARG AS CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL MAINTAINER NONE ONBUILD RUN SHELL STOPSIGNAL USER VOLUME WORKDIR"},
	{names: "nginx", with: leading, lines: "#",
		quotes: []quote{{open: `"`, esc: '\\', lines: true, vars: true}, longSingle}, parts: "-./:~*", glue: "-/:=~*",
		sigils: "$", brackets: "{"},
	{names: "vim viml vimscript", with: commentsFirst, lines: `"`, quotes: []quote{double, {open: `'`, doubled: true}},
		parts: "#:", sigils: "&@", glue: "-:",
		keywords: "abort augroup autocmd break call catch colorscheme command continue echo else elseif endfor endfunction endif endtry endwhile execute filetype finally for function if imap in inoremap let map nmap nnoremap noremap return set setlocal silent syntax try unlet vmap vnoremap while on off"},
	{names: "json jsonc json5 jsonl webmanifest", lines: "//", blocks: "/* */", quotes: []quote{double, single},
		keys: ":", keywords: "true false null"},
	{names: "toml", with: sections, lines: "#",
		quotes: []quote{tripleDouble, {open: `'''`, lines: true}, double, bareSingle}, parts: "-.", digits: "-:",
		keys: "=", keywords: "true false inf nan"},
	{names: "ini cfg conf properties dotenv editorconfig gitconfig",
		with: sections | commentsFirst | keysFirst | folded, lines: "# ;", quotes: []quote{double, bareSingle},
		parts: "-./:*", keys: "=", keywords: "true false yes no on off"},
	{names: "yaml yml", family: yamlLike, with: folded,
		quotes: []quote{longDouble, {open: `'`, doubled: true, lines: true}}, parts: "-.", keys: ":",
		keywords: "true false yes no on off null ~"},
	{names: "html htm vue svelte", family: markupLike, with: scripts,
		quotes: []quote{{open: `"`, lines: true}, {open: `'`, lines: true}}, parts: "-:."},
	{names: "xml svg rss xsd xsl plist", family: markupLike,
		quotes: []quote{{open: `"`, lines: true}, {open: `'`, lines: true}}, parts: "-:."},
	{names: "css", family: cssLike, blocks: "/* */", quotes: []quote{double, single}, parts: "-"},
	{names: "scss sass less", family: cssLike, lines: "//", blocks: "/* */", quotes: []quote{double, single},
		parts: "-"},
	{names: "diff patch", family: diffs},
	{names: "latex tex", family: texLike, parts: "@*"},
}
