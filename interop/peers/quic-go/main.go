// Endpoint of the QUIC interop runner on quic-go.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

const unsupported = 127

var testcase = os.Getenv("TESTCASE")

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Println(version())
		return
	}
	role := os.Getenv("ROLE")
	switch testcase {
	case "handshake", "transfer", "longrtt", "multiplexing", "multiconnect", "retry", "resumption",
		"zerortt", "http3", "ecn", "postquantum", "postquantum-retry":
	default:
		cannot("quic-go has no way to do " + testcase)
	}
	wanted, known := groups()
	if !known {
		cannot("crypto/tls lacks one of these groups")
	}
	if len(wanted) > 1 && role == "client" && wanted[0] != tls.X25519MLKEM768 {
		cannot("a client chooses the group of its share by an order of its own")
	}
	curves = wanted
	run := client
	if role == "server" {
		run = server
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Ends the program for a reason that makes the case impossible.
func cannot(reason string) {
	fmt.Fprintln(os.Stderr, reason)
	os.Exit(unsupported)
}

// Groups of key exchange; nil for Go's own choice.
var curves []tls.CurveID

// Returns the groups that are asked for, and false if crypto/tls does not have one.
func groups() ([]tls.CurveID, bool) {
	names := os.Getenv("GROUPS")
	if names == "" && strings.HasPrefix(testcase, "postquantum") {
		names = "X25519MLKEM768"
	}
	var wanted []tls.CurveID
	for _, name := range strings.FieldsFunc(names, func(c rune) bool { return c == ',' }) {
		curve, known := map[string]tls.CurveID{
			"X25519MLKEM768":     tls.X25519MLKEM768,
			"SecP256r1MLKEM768":  tls.SecP256r1MLKEM768,
			"SecP384r1MLKEM1024": tls.SecP384r1MLKEM1024,
			"X25519":             tls.X25519,
			"secp256r1":          tls.CurveP256,
		}[name]
		if !known {
			return nil, false
		}
		wanted = append(wanted, curve)
	}
	return wanted, true
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "github.com/quic-go/quic-go" {
			return module.Version + " with " + info.GoVersion
		}
	}
	return info.GoVersion
}

func settings() *quic.Config {
	return &quic.Config{
		Versions:                []quic.Version{quic.Version1},
		HandshakeIdleTimeout:    50 * time.Second,
		MaxIdleTimeout:          30 * time.Second,
		Allow0RTT:               testcase == "zerortt",
		DisablePathMTUDiscovery: true,
	}
}

func keyLog() io.Writer {
	file, err := os.OpenFile(os.Getenv("SSLKEYLOGFILE"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil
	}
	return file
}

func alpn() []string {
	if testcase == "http3" {
		return []string{"h3"}
	}
	return []string{"hq-interop"}
}

func server() error {
	certs := os.Getenv("CERTS")
	pair, err := tls.LoadX509KeyPair(path.Join(certs, "cert.pem"), path.Join(certs, "priv.key"))
	if err != nil {
		return err
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{pair},
		NextProtos:   alpn(),
		KeyLogWriter: keyLog(),

		CurvePreferences: curves,
	}
	address, err := net.ResolveUDPAddr("udp", os.Getenv("LISTEN"))
	if err != nil {
		return err
	}
	socket, err := net.ListenUDP("udp", address)
	if err != nil {
		return err
	}
	transport := &quic.Transport{Conn: socket}
	if strings.HasSuffix(testcase, "retry") {
		transport.VerifySourceAddress = func(net.Addr) bool { return true }
	}
	stopped, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	listener, err := transport.ListenEarly(config, settings())
	if err != nil {
		return err
	}
	fmt.Println("listening on", socket.LocalAddr())
	www := os.Getenv("WWW")
	if testcase == "http3" {
		files := &http3.Server{Handler: http.FileServer(http.Dir(www))}
		go files.ServeListener(listener)
		<-stopped.Done()
		return nil
	}
	for {
		connection, err := listener.Accept(stopped)
		if err != nil {
			return nil
		}
		go answer(connection, www)
	}
}

func answer(connection *quic.Conn, www string) {
	for {
		stream, err := connection.AcceptStream(context.Background())
		if err != nil {
			return
		}
		go func() {
			request, err := bufio.NewReader(stream).ReadString('\n')
			if err != nil && !errors.Is(err, io.EOF) {
				return
			}
			name := strings.TrimPrefix(strings.TrimSpace(request), "GET ")
			file, err := os.Open(filepath.Join(www, filepath.Clean("/"+name)))
			if err != nil {
				stream.CancelWrite(1)
				return
			}
			defer file.Close()
			if _, err := io.Copy(stream, file); err == nil {
				stream.Close()
			}
		}()
	}
}

func client() error {
	root, err := os.ReadFile(path.Join(os.Getenv("CERTS"), "ca.pem"))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(root)
	config := &tls.Config{
		RootCAs:            roots,
		NextProtos:         alpn(),
		KeyLogWriter:       keyLog(),
		ClientSessionCache: tls.NewLRUClientSessionCache(10),
		CurvePreferences:   curves,
	}
	urls := strings.Fields(os.Getenv("REQUESTS"))
	switch testcase {
	case "http3":
		return getByHTTP3(config, urls)
	case "multiconnect":
		for _, one := range urls {
			if err := connectAndGet(config, []string{one}); err != nil {
				return err
			}
		}
		return nil
	case "resumption", "zerortt":
		if err := connectAndGet(config, urls[:1]); err != nil {
			return err
		}
		return connectAndGet(config, urls[1:])
	default:
		return connectAndGet(config, urls)
	}
}

func connectAndGet(config *tls.Config, urls []string) error {
	first, err := url.Parse(urls[0])
	if err != nil {
		return err
	}
	dial := quic.DialAddr
	if testcase == "zerortt" {
		dial = quic.DialAddrEarly
	}
	connection, err := dial(context.Background(), first.Host, config, settings())
	if err != nil {
		return err
	}
	defer connection.CloseWithError(0, "")
	results := make(chan error, len(urls))
	for _, one := range urls {
		go func() { results <- get(connection, one) }()
	}
	for range urls {
		if err := <-results; err != nil {
			return err
		}
	}
	return nil
}

func get(connection *quic.Conn, from string) error {
	parsed, err := url.Parse(from)
	if err != nil {
		return err
	}
	stream, err := connection.OpenStreamSync(context.Background())
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stream, "GET %s\r\n", parsed.Path); err != nil {
		return err
	}
	stream.Close()
	return save(parsed, stream)
}

func save(from *url.URL, contents io.Reader) error {
	file, err := os.Create(path.Join(os.Getenv("DOWNLOADS"), path.Base(from.Path)))
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(file, contents)
	return err
}

func getByHTTP3(config *tls.Config, urls []string) error {
	transport := &http3.Transport{TLSClientConfig: config, QUICConfig: settings()}
	defer transport.Close()
	results := make(chan error, len(urls))
	for _, one := range urls {
		go func() {
			response, err := (&http.Client{Transport: transport}).Get(one)
			if err == nil {
				defer response.Body.Close()
				err = save(response.Request.URL, response.Body)
			}
			results <- err
		}()
	}
	for range urls {
		if err := <-results; err != nil {
			return err
		}
	}
	return nil
}
