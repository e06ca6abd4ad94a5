package registry

// serverJSON is a server.json by the schema of 2025-12-11. Unknown members are refused, except within
// serverMeta.
type serverJSON struct {
	Schema      string       `json:"$schema"`
	Name        string       `json:"name"`
	Description string       `json:"description"`
	Title       string       `json:"title"`
	Repository  *repository  `json:"repository"`
	Version     string       `json:"version"`
	WebsiteURL  string       `json:"websiteUrl"`
	Icons       []icon       `json:"icons"`
	Packages    []serverPack `json:"packages"`
	Remotes     []transport  `json:"remotes"`
	Meta        *serverMeta  `json:"_meta"`
}

// serverMeta holds the extensions of publishers, which are not checked.
type serverMeta struct {
	Provided map[string]any `json:"io.modelcontextprotocol.registry/publisher-provided"`
}

type repository struct {
	URL       string `json:"url"`
	Source    string `json:"source"`
	ID        string `json:"id"`
	Subfolder string `json:"subfolder"`
}

type icon struct {
	Src      string   `json:"src"`
	MimeType string   `json:"mimeType"`
	Sizes    []string `json:"sizes"`
	Theme    string   `json:"theme"`
}

// serverPack is a package that contains the server, for users who run it themselves.
type serverPack struct {
	RegistryType         string     `json:"registryType"`
	RegistryBaseURL      string     `json:"registryBaseUrl"`
	Identifier           string     `json:"identifier"`
	Version              string     `json:"version"`
	FileSHA256           string     `json:"fileSha256"`
	RuntimeHint          string     `json:"runtimeHint"`
	Transport            transport  `json:"transport"`
	RuntimeArguments     []argument `json:"runtimeArguments"`
	PackageArguments     []argument `json:"packageArguments"`
	EnvironmentVariables []argument `json:"environmentVariables"`
}

// transport describes how to reach a running server: its type, its address and the headers to send.
type transport struct {
	Type      string           `json:"type"`
	URL       string           `json:"url"`
	Headers   []argument       `json:"headers"`
	Variables map[string]input `json:"variables"`
}

// argument is an argument of a command, an environment variable or an HTTP header. The last two have no
// type, value hint or repetition.
type argument struct {
	Type        string           `json:"type"`
	Name        string           `json:"name"`
	ValueHint   *string          `json:"valueHint"`
	IsRepeated  bool             `json:"isRepeated"`
	Description string           `json:"description"`
	IsRequired  bool             `json:"isRequired"`
	Format      string           `json:"format"`
	Value       *string          `json:"value"`
	IsSecret    bool             `json:"isSecret"`
	Default     string           `json:"default"`
	Placeholder string           `json:"placeholder"`
	Choices     []string         `json:"choices"`
	Variables   map[string]input `json:"variables"`
}

type input struct {
	Description string   `json:"description"`
	IsRequired  bool     `json:"isRequired"`
	Format      string   `json:"format"`
	Value       string   `json:"value"`
	IsSecret    bool     `json:"isSecret"`
	Default     string   `json:"default"`
	Placeholder string   `json:"placeholder"`
	Choices     []string `json:"choices"`
}

// Transport types of servers. This portal calls only streamable servers.
const (
	stdio      = "stdio"
	streamable = "streamable-http"
	sse        = "sse"
)

// endpoint returns the address at which this portal can call the server: the first remote of type
// streamable-http without variables in its address; "" without one.
func (s *serverJSON) endpoint() string {
	for _, r := range s.Remotes {
		if r.Type == streamable && len(templateNames(r.URL)) == 0 && len(r.URL) <= maxEndpoint {
			return r.URL
		}
	}
	return ""
}

// maxEndpoint bounds the address of an agent in bytes, as in the hub.
const maxEndpoint = 500
