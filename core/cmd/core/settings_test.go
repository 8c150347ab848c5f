package main

import (
	"context"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/cli"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/config/configtest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Settings that other settings require.
var (
	withBucket = []string{
		"CORE_OBJECTS_URL=s3://veneer", "CORE_OBJECTS_ENDPOINT=http://127.0.0.1:1", "CORE_OBJECTS_ACCESS_KEY=veneer", "CORE_OBJECTS_SECRET_KEY=hunter2",
	}
	withMail  = []string{"CORE_SMTP_HOST=smtp.example.org", "CORE_SMTP_FROM=noreply@example.org", "CORE_MAIL_URL=https://skins.example.org"}
	withPurge = []string{"CORE_PURGE_URL=https://hooks.example.org/purge", "CORE_PURGE_SECRET=0123456789abcdef0123456789abcdef"}
)

// wrongSettings has a wrong value for every setting.
var wrongSettings = map[string]configtest.InvalidValue{
	"CORE_LISTEN":                           {Value: "127.0.0.1"},
	"CORE_TLS_CERT":                         {Value: "/nowhere/cert.pem", Environ: []string{"CORE_TLS_KEY=/nowhere/key.pem"}},
	"CORE_TLS_KEY":                          {Value: "", Environ: []string{"CORE_TLS_CERT=/nowhere/cert.pem"}},
	"CORE_EDGES_LISTEN":                     {Value: "127.0.0.1:99999"},
	"CORE_EDGES_TLS_CERT":                   {Value: "", Environ: []string{"CORE_EDGES_TLS_KEY=/nowhere/key.pem"}},
	"CORE_EDGES_TLS_KEY":                    {Value: "", Environ: []string{"CORE_EDGES_TLS_CERT=/nowhere/cert.pem"}},
	"CORE_OPS_LISTEN":                       {Value: "256.0.0.1:9080"},
	"CORE_OPS_PPROF":                        {Value: "on"},
	"CORE_PUBLIC_URL":                       {Value: "skins.example.org"},
	"CORE_TEXTURES_URL":                     {Value: "https://skins.example.org/textures"},
	"CORE_DATABASE_URL":                     {Value: "postgres://ann:hunter2@127.0.0.1:port/veneer", IsSecret: true},
	"CORE_LIBRARY_DATABASE_URL":             {Value: "postgres://ann:hunter2@127.0.0.1:port/veneer", IsSecret: true},
	"CORE_LISTEN_DATABASE_URL":              {Value: "mysql://ann:hunter2@127.0.0.1/veneer", IsSecret: true},
	"CORE_DATABASE_CONNECTIONS":             {Value: "1"},
	"CORE_OBJECTS_URL":                      {Value: "/var/lib/veneer"},
	"CORE_OBJECTS_ENDPOINT":                 {Value: "s3.example.org", Environ: withBucket},
	"CORE_OBJECTS_ACCESS_KEY":               {Value: "", Environ: withBucket},
	"CORE_OBJECTS_SECRET_KEY":               {Value: "", Environ: withBucket},
	"CORE_OBJECTS_CA":                       {Value: "/nowhere/ca.pem", Environ: withBucket},
	"CORE_OBJECTS_TIMEOUT":                  {Value: "0s"},
	"CORE_TOKEN_KEYS":                       {Value: "c2hvcnQ=", IsSecret: true},
	"CORE_TOKEN_TTL":                        {Value: "60"},
	"CORE_SESSION_IDLE":                     {Value: "2 weeks"},
	"CORE_SESSION_LONGEST":                  {Value: "90d"},
	"CORE_SESSIONS_PER_USER":                {Value: "-1"},
	"CORE_REFRESH_GRACE":                    {Value: "-1s"},
	"CORE_PLAYER_NAME_PATTERN":              {Value: "[a-z"},
	"CORE_PLAYER_NAME_MIN":                  {Value: "17"},
	"CORE_PLAYER_NAME_MAX":                  {Value: "65"},
	"CORE_UPLOAD_MAX_BYTES":                 {Value: "1MiB"},
	"CORE_UPLOAD_MAX_SCALE":                 {Value: "17"},
	"CORE_UPLOAD_CONCURRENCY":               {Value: "12"},
	"CORE_QUOTA_PLAYERS":                    {Value: "-1"},
	"CORE_QUOTA_CLOSET_ITEMS":               {Value: "many"},
	"CORE_QUOTA_TEXTURES":                   {Value: "1e3"},
	"CORE_QUOTA_TEXTURE_BYTES":              {Value: "9223372036854775808"},
	"CORE_LIMIT_LOGIN_FAILURES":             {Value: "-2"},
	"CORE_LIMIT_LOGIN_FAILURES_PER_ADDRESS": {Value: "-3"},
	"CORE_LIMIT_LOGIN_FAILURES_PER_ACCOUNT": {Value: "-4"},
	"CORE_SCORE_REGISTRATION":               {Value: "1000001"},
	"CORE_SCORE_PLAYER":                     {Value: "-1"},
	"CORE_SCORE_CLOSET_ITEM":                {Value: "-1"},
	"CORE_SCORE_TEXTURE_KIB":                {Value: "0.5"},
	"CORE_SCORE_PRIVATE_TEXTURE_KIB":        {Value: "-1"},
	"CORE_SCORE_UPLOAD_REWARD":              {Value: "-1"},
	"CORE_SCORE_LIKE_REWARD":                {Value: "1000001"},
	"CORE_SCORE_SIGN_REWARD":                {Value: "-1"},
	"CORE_SCORE_REFUND_PLAYER":              {Value: "yes"},
	"CORE_SCORE_REFUND_CLOSET_ITEM":         {Value: "no"},
	"CORE_SCORE_REFUND_TEXTURE":             {Value: "2"},
	"CORE_SCORE_RETENTION":                  {Value: "-1h0m0s"},
	"CORE_CORS_ORIGINS":                     {Value: "*.example.com"},
	"CORE_REGISTRATION":                     {Value: "ajar"},
	"CORE_BODY_BYTES":                       {Value: "16383"},
	"CORE_LIMIT_REQUESTS":                   {Value: "1000001"},
	"CORE_LIMIT_REQUESTS_BURST":             {Value: "0"},
	"CORE_LIMIT_REGISTRATIONS":              {Value: "-1"},
	"CORE_LIMIT_UPLOADS":                    {Value: "-1"},
	"CORE_LIMIT_PRICES":                     {Value: "-1"},
	"CORE_LIMIT_CHANGES":                    {Value: "-1"},
	"CORE_LIMIT_REPORTS":                    {Value: "-1"},
	"CORE_LIMIT_RESETS":                     {Value: "-1"},
	"CORE_CONSOLE":                          {Value: "hidden"},
	"CORE_YGGDRASIL":                        {Value: "yes"},
	"CORE_YGGDRASIL_KEY_FILE":               {Value: "/nowhere/yggdrasil.pem"},
	"CORE_YGGDRASIL_TOKENS":                 {Value: "-1"},
	"CORE_YGGDRASIL_TOKEN_TTL":              {Value: "15 days"},
	"CORE_YGGDRASIL_TOKEN_REFRESH":          {Value: "-1s"},
	"CORE_YGGDRASIL_LOGIN_INTERVAL":         {Value: "2h0m0s"},
	"CORE_YGGDRASIL_REQUIRE_VERIFIED":       {Value: "maybe"},
	"CORE_YGGDRASIL_PROFILE_BYTES":          {Value: "65535"},
	"CORE_YGGDRASIL_UNKNOWN_PER_SECOND":     {Value: "-1"},
	"CORE_YGGDRASIL_CHECK_IP":               {Value: "strictly"},
	"CORE_YGGDRASIL_PROFILE_KEYS":           {Value: "signed"},
	"CORE_YGGDRASIL_SKIN_DOMAINS":           {Value: "https://cdn.example.org"},
	"CORE_NOTIFICATION_RETENTION":           {Value: "-1s"},
	"CORE_EDGE_SECRETS":                     {Value: "short", IsSecret: true},
	"CORE_PURGE_URL":                        {Value: "hooks.example.org/token", Environ: withPurge, IsSecret: true},
	"CORE_PURGE_SECRET":                     {Value: "hunter2", Environ: withPurge, IsSecret: true},
	"CORE_PURGE_TIMEOUT":                    {Value: "0s"},
	"CORE_SMTP_HOST":                        {Value: "smtp.example.org:25", Environ: withMail},
	"CORE_SMTP_PORT":                        {Value: "65536"},
	"CORE_SMTP_TLS":                         {Value: "ssl"},
	"CORE_SMTP_CA":                          {Value: "/nowhere/ca.pem", Environ: withMail},
	"CORE_SMTP_USER":                        {Value: "", Environ: append([]string{"CORE_SMTP_PASSWORD=hunter2"}, withMail...)},
	"CORE_SMTP_PASSWORD":                    {Value: "", Environ: append([]string{"CORE_SMTP_USER=ann"}, withMail...)},
	"CORE_SMTP_FROM":                        {Value: "noreply", Environ: withMail},
	"CORE_SMTP_TIMEOUT":                     {Value: "-1s"},
	"CORE_SITE_NAME":                        {Value: strings.Repeat("x", 65)},
	"CORE_SITE_DESCRIPTION":                 {Value: strings.Repeat("x", 201)},
	"CORE_SITE_CONTACT":                     {Value: "the operator"},
	"CORE_SITE_ACCENT":                      {Value: "#ffd400"},
	"CORE_SITE_WALL":                        {Value: "maybe"},
	"CORE_SITE_INDEXING":                    {Value: "no"},
	"CORE_SITE_LOGO":                        {Value: "/nowhere/logo.png"},
	"CORE_SITE_PAGES":                       {Value: "/nowhere/pages"},
	"CORE_MAIL_URL":                         {Value: "skins.example.org", Environ: withMail},
	"CORE_MAIL_VERIFICATION_TTL":            {Value: "1s"},
	"CORE_MAIL_RESET_TTL":                   {Value: "59s"},
	"CORE_MAIL_PER_HOUR":                    {Value: "-1"},
	"CORE_MAIL_UNCONFIRMED_PER_HOUR":        {Value: "-1"},
	"CORE_MAIL_RETRY_FOR":                   {Value: "0s"},
	"CORE_DEMO":                             {Value: "please"},
	"CORE_READ_TIMEOUT":                     {Value: "0s"},
	"CORE_UPLOAD_TIMEOUT":                   {Value: "-1s"},
	"CORE_WRITE_TIMEOUT":                    {Value: "30"},
	"CORE_IDLE_TIMEOUT":                     {Value: "1 minute"},
	"CORE_WORK_TIMEOUT":                     {Value: "0s"},
	"CORE_HEADER_BYTES":                     {Value: "1000"},
	"CORE_MAX_CONNECTIONS":                  {Value: "0"},
	"CORE_BODIES_BYTES":                     {Value: "4194304", Environ: []string{"CORE_UPLOAD_MAX_BYTES=8388608"}},
	"CORE_ADDRESS_CONNECTIONS":              {Value: "-1"},
	"CORE_ADDRESS_REQUESTS":                 {Value: "-1"},
	"CORE_ADDRESS_BURST":                    {Value: "-1"},
	"CORE_TRUSTED_PROXIES":                  {Value: "10.0.0.1"},
	"CORE_DRAIN_WAIT":                       {Value: "-1s"},
	"CORE_DRAIN_TIMEOUT":                    {Value: "-1s"},
	"CORE_LOG_LEVEL":                        {Value: "verbose"},
	"CORE_LOG_FORMAT":                       {Value: "xml"},
	"CORE_LOG_SAMPLE_RATE":                  {Value: "1%"},
	"CORE_TRACES_URL":                       {Value: "collector:4318"},
	"CORE_TRACES_SAMPLE":                    {Value: "1.5"},
}

// noWrongSettings are settings that accept every value.
var noWrongSettings = map[string]string{
	"CORE_OWNER_DATABASE_URL":  "only core migrate connects to it: TestMigrateAsOwner",
	"CORE_TOKEN_ISSUER":        "any text is an issuer",
	"CORE_PLAYER_NAME_ALLOWED": "any text is a description",
	"CORE_OBJECTS_REGION":      "only the store can check it: TestServeWithoutItsStore",
}

// A wrong setting is reported before core does anything.
func TestWrongSettings(t *testing.T) {
	t.Parallel()

	environ := environment(t, "postgres://plain:hunter2@127.0.0.1:1/plain")
	configtest.Run[settings](t, prefix, wrongSettings, noWrongSettings, func(t *testing.T, changes []string) string {
		t.Helper()
		changed := environ
		for _, change := range changes {
			name, value, _ := strings.Cut(change, "=")
			changed = withSetting(changed, name, value)
		}
		return serveError(t, changed, "").Error()
	})
}

// A shell command is rejected as the value of a secret.
func TestShellCommandsAreNoSecrets(t *testing.T) {
	t.Parallel()

	environ := append(environment(t, "postgres://plain:hunter2@127.0.0.1:1/plain"), withPurge...)
	for _, s := range config.List[settings](prefix) {
		if !strings.Contains(s.Example, "$(") {
			continue
		}
		want := s.Name + " is a shell command and not its output; for example " + s.Name + "=" + s.Example
		testenv.Equal(t, serveError(t, withSetting(environ, s.Name, s.Example), "").Error(), want, "the error")
	}
}

// serveError runs core serve, which must fail before it logs a line with a text, and returns its error.
func serveError(t *testing.T, environ []string, unlogged string) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := writerFunc(func(line []byte) {
		if strings.Contains(string(line), unlogged) {
			t.Errorf("it starts, and logs %s", line)
			cancel()
		}
	})
	serve := cli.Invocation{Args: []string{"serve"}, Environ: environ, Stdin: strings.NewReader(""), Stdout: log}
	err := program().Run(ctx, serve)
	if err == nil {
		t.Fatal("it exits without an error")
	}
	return err
}

// writerFunc is an io.Writer that calls a function.
type writerFunc func([]byte)

func (w writerFunc) Write(written []byte) (int, error) {
	w(written)
	return len(written), nil
}

// All example values together are valid settings, except for the files that they name.
func TestExamplesAreRight(t *testing.T) {
	t.Parallel()

	config := testenv.Must(config.Read[settings](prefix, configtest.Examples[settings](t, prefix)))(t)
	testenv.Is(t, config.check(), nil, "the examples")
}

// Links in e-mail lead to the console unless the site has pages of its own.
func TestMailURL(t *testing.T) {
	t.Parallel()
	f := func(want string, change func(*settings)) {
		t.Helper()
		cfg := settings{Console: "on", PublicURL: "https://skins.example.org/"}
		cfg.SMTP.Host = "smtp.example.org"
		change(&cfg)
		testenv.Equal(t, cfg.mailURL(), want, "the address of pages in e-mail")
	}
	f("https://skins.example.org/console", func(*settings) {})
	f("https://pages.example.org", func(cfg *settings) { cfg.Mail.URL = "https://pages.example.org" })
	f("", func(cfg *settings) { cfg.Console = "off" })
	f("", func(cfg *settings) { cfg.PublicURL = "" })
	f("", func(cfg *settings) { cfg.SMTP.Host = "" })
}
