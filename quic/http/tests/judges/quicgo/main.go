// Command quicgo is a client and a server of HTTP/3 on quic-go.
//
//	quicgo client URL ROOT [CERTIFICATE KEY]
//	quicgo server CERTIFICATE KEY [CLIENTS]
//
// The server asks for certificates of clients if it is given their root.
// The client asks for the cases that all judges share and prints a line of JSON for each. The server
// prints its address, and serves until its input ends.
package main

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/quic-go/quic-go/http3"
)

type answer struct {
	Case   string `json:"case"`
	Status int    `json:"status"`
	Len    int    `json:"len"`
	Hash   string `json:"sha256"`
	Group  string `json:"group"`
	Fields int    `json:"fields"`
}

func pattern(n int) []byte {
	all := make([]byte, n)
	for i := range all {
		all[i] = byte(i % 251)
	}
	return all
}

func main() {
	log.SetFlags(0)
	switch os.Args[1] {
	case "client":
		client(os.Args[2], os.Args[3], os.Args[4:])
	case "server":
		server(os.Args[2], os.Args[3], os.Args[4:])
	}
}

func pool(certificate string) *x509.CertPool {
	pem, err := os.ReadFile(certificate)
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return roots
}

func client(url, root string, own []string) {
	config := &tls.Config{RootCAs: pool(root)}
	if len(own) == 2 {
		pair, err := tls.LoadX509KeyPair(own[0], own[1])
		if err != nil {
			log.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	transport := &http3.Transport{TLSClientConfig: config}
	defer transport.Close()
	client := &http.Client{Transport: transport}
	ask := func(name, method, path string, body []byte) {
		request, err := http.NewRequest(method, url+path, bytes.NewReader(body))
		if err != nil {
			log.Fatal(name, ": ", err)
		}
		response, err := client.Do(request)
		if err != nil {
			log.Fatal(name, ": ", err)
		}
		all, err := io.ReadAll(response.Body)
		if err != nil {
			log.Fatal(name, ": ", err)
		}
		fields := 0
		for field := range response.Header {
			if strings.HasPrefix(field, "X-Field-") {
				fields++
			}
		}
		sum := sha256.Sum256(all)
		line, _ := json.Marshal(answer{
			name, response.StatusCode, len(all), hex.EncodeToString(sum[:]),
			response.Header.Get("X-Group"), fields,
		})
		os.Stdout.Write(append(line, '\n'))
	}
	ask("small", "GET", "/bytes/10", nil)
	ask("empty", "GET", "/bytes/0", nil)
	ask("large", "GET", "/bytes/5000000", nil)
	ask("upload", "POST", "/echo", pattern(1000000))
	ask("head", "HEAD", "/bytes/1000", nil)
	ask("fields", "GET", "/fields/100", nil)
	ask("missing", "GET", "/missing", nil)
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() { ask("parallel", "GET", fmt.Sprintf("/bytes/%d", 1000+i), nil) })
	}
	all.Wait()
}

func server(certificate, key string, clients []string) {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		log.Fatal(err)
	}
	handler := http.NewServeMux()
	handler.HandleFunc("GET /bytes/{n}", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.PathValue("n"))
		w.Write(pattern(n))
	})
	handler.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		io.Copy(w, r.Body)
	})
	handler.HandleFunc("GET /fields/{n}", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.PathValue("n"))
		for i := range n {
			w.Header().Set(fmt.Sprintf("x-field-%d", i), strings.Repeat("v", i))
		}
	})
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		log.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}}
	if len(clients) == 1 {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, pool(clients[0])
	}
	server := &http3.Server{TLSConfig: http3.ConfigureTLSConfig(config), Handler: handler}
	go func() { log.Fatal(server.Serve(socket)) }()
	fmt.Println(socket.LocalAddr())
	io.Copy(io.Discard, os.Stdin)
	server.Close()
}
