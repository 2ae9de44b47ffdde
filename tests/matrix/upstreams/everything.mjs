// Starts the npm package server-everything over Streamable HTTP, pinned to the loopback address and a port chosen by
// the OS: the package itself listens on every address. Prints the URL as the first line of stdout when it listens.
import { Server } from "node:net";

process.env.PORT = "0";
console.log = console.error; // the package logs on stdout
const { listen } = Server.prototype;
Server.prototype.listen = function (port, ...rest) {
  this.once("listening", () => process.stdout.write(`http://127.0.0.1:${this.address().port}/mcp\n`));
  return listen.call(this, Number(port), "127.0.0.1", ...rest);
};
await import("@modelcontextprotocol/server-everything/dist/transports/streamableHttp.js");
