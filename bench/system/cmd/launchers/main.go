// Command launchers tests the API of launchers and game servers with programs that are not part of
// the repository: yggdrasil-mock's tests, and authlib-injector.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/veneer-skins/veneer/bench/system/launchers"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func main() { stack.Main("launchers", run) }

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("launchers", flag.ContinueOnError)
	suite := flags.String("suite", "", "path of the directory test of yggdrasil-mock, in which npm ci has run")
	agent := flags.String("agent", "", "path of the JAR of authlib-injector")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *suite == "" && *agent == "" {
		return errors.New("there is nothing to run: give -suite, -agent or both")
	}
	var failed error
	if *agent != "" {
		failed = runOnSite(ctx, func(tb testing.TB, site *launchers.Site) {
			tb.Helper()
			launchers.CheckAgent(tb, site, *agent, "bench/system/launchers")
		})
		if failed == nil {
			fmt.Fprintln(os.Stdout, "authlib-injector: passed")
		}
	}
	if *suite != "" {
		failed = errors.Join(failed, runOnSite(ctx, func(tb testing.TB, site *launchers.Site) {
			tb.Helper()
			result := launchers.RunSuite(tb, site, *suite)
			fmt.Fprintf(os.Stdout, "yggdrasil-mock: %d passed, %d failed; with other addresses of textures, %d passed, %d failed\n",
				len(result.Passed), len(result.Failed), len(result.PassedByAlias), len(result.FailedByAlias))
			testenv.Check(tb, len(result.Passed) > 0 && len(result.PassedByAlias) > 0, "the suite ran no test")
			for _, failure := range append(result.Failed, result.FailedByAlias...) {
				tb.Error("failed:", failure)
			}
		}))
	}
	return failed
}

// runOnSite runs tests on a site of their own.
func runOnSite(ctx context.Context, work func(tb testing.TB, site *launchers.Site)) error {
	return stack.RunWithTB(ctx, func(tb testing.TB) {
		tb.Helper()
		work(tb, launchers.Start(tb, blobstore.Config{URL: "file://" + tb.TempDir()}))
	})
}
