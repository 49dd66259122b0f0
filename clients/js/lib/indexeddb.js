// Intents in IndexedDB: they outlive the page and the browser, and all tabs of an origin see the same ones.

const STORE = "intents";

export async function indexedDBIntents(name = "oncekey", factory = globalThis.indexedDB) {
  const intents = new IndexedDBIntents(name, factory);
  await intents.open();
  return intents;
}

class IndexedDBIntents {
  #name;
  #factory;
  #opened = null;

  constructor(name, factory) {
    this.#name = name;
    this.#factory = factory;
  }

  open() {
    this.#opened ??= this.#connect();
    return this.#opened;
  }

  change(id, decide) {
    return this.#run("readwrite", (records, done) => {
      records.get(id).onsuccess = ({ target: { result: found } }) => {
        const wanted = decide(found);
        if (wanted === null) records.delete(id);
        else if (wanted !== undefined) records.put(wanted);
        done(wanted === undefined ? found : (wanted ?? undefined));
      };
    });
  }

  all() {
    return this.#run("readonly", (records, done) => {
      records.getAll().onsuccess = ({ target: { result: found } }) => done(found);
    });
  }

  async #run(mode, work) {
    const transaction = await this.#begin(mode);
    return new Promise((resolve, reject) => {
      let result;
      // Not before it is on disk: what is sent must be kept.
      transaction.oncomplete = () => resolve(result);
      transaction.onabort = () => reject(transaction.error ?? new Error("The transaction was aborted."));
      work(transaction.objectStore(STORE), (value) => {
        result = value;
      });
    });
  }

  async #begin(mode) {
    const begin = (database) => database.transaction(STORE, mode, { durability: "strict" });
    const database = await this.open();
    try {
      return begin(database);
    } catch (error) {
      if (error.name !== "InvalidStateError") throw error;
      // Browsers close connections of their own accord, when a phone wakes up for instance.
      this.#opened = null;
      return begin(await this.open());
    }
  }

  #connect() {
    const opened = new Promise((resolve, reject) => {
      const request = this.#factory.open(this.#name, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "id" });
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
    return opened.then(
      (database) => this.#watched(database),
      (error) => {
        this.#opened = null;
        throw error;
      },
    );
  }

  #watched(database) {
    const forget = () => {
      this.#opened = null;
    };
    database.onclose = forget;
    // Somebody deletes it: holding on to it would keep them waiting.
    database.onversionchange = () => {
      forget();
      database.close();
    };
    return database;
  }
}
