// Required before a sample server: it listens on loopback alone, on a free port whatever it asks for, whose URL is the
// first line it says; and it connects nowhere, so that no test depends on what is on the internet.
const { Server, Socket } = require("node:net");

const { listen } = Server.prototype;
Server.prototype.listen = function (...given) {
  const callback = given.find((each) => typeof each === "function");
  return listen.call(this, 0, "127.0.0.1", () => {
    console.log(`http://127.0.0.1:${this.address().port}/mcp`);
    callback?.();
  });
};
Socket.prototype.connect = () => {
  throw new Error("a sample server under test connects nowhere");
};
