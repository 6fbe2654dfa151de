/** A short list of texts in this browser, the newest first, each once. Works without storage too. */
export class Kept {
  private texts: string[] | null = null;

  constructor(private readonly name: string, private readonly most: number) {}

  all(): readonly string[] {
    return (this.texts ??= this.read());
  }

  add(text: string): void {
    const wanted = text.trim();
    if (wanted) this.write([wanted, ...this.all().filter((one) => one !== wanted)].slice(0, this.most));
  }

  remove(text: string): void {
    this.write(this.all().filter((one) => one !== text));
  }

  private read(): string[] {
    try {
      const found: unknown = JSON.parse(localStorage.getItem(this.name) ?? "[]");
      return Array.isArray(found) ? found.filter((one): one is string => typeof one === "string").slice(0, this.most) : [];
    } catch {
      return [];
    }
  }

  private write(texts: string[]): void {
    this.texts = texts;
    try {
      localStorage.setItem(this.name, JSON.stringify(texts));
    } catch {
      // full or forbidden: kept until the page is closed
    }
  }
}
