import { defineConfig } from "vite";

// The built page is committed and shipped in the wheel: the console needs no npm to run.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/tailrace/console/static",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    rollupOptions: {
      output: {
        entryFileNames: "assets/[name].js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
      },
    },
  },
});
