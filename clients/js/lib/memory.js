// Intents that are forgotten with the page. Also the rule for every other place to keep them:
//
// `change(id, decide)` gives `decide` the record of that id, or undefined, and stores what it returns: a record, null
// to remove it, undefined to leave it. Nobody else changes that record meanwhile. It answers what is stored then.
// `all()` answers every record.

export function memoryIntents() {
  return new MemoryIntents();
}

class MemoryIntents {
  #records = new Map();

  async change(id, decide) {
    const wanted = decide(this.#records.get(id));
    if (wanted === null) this.#records.delete(id);
    else if (wanted !== undefined) this.#records.set(id, wanted);
    return this.#records.get(id);
  }

  async all() {
    return [...this.#records.values()];
  }
}
