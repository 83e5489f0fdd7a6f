// Narrow: a table that would scroll becomes a block for each row, in which every cell says which column it is of (book.css).
(() => {
    const ROLES = { TABLE: "table", THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TH: "columnheader", TD: "cell" };
    const NOTHING = ["", "-", "–"];
    const narrow = matchMedia("(max-width: 600px)");
    const wrappers = Array.from(document.querySelectorAll(".content .table-wrapper"));

    function prepare(table) {
        const columns = Array.from(table.tHead?.rows[0]?.cells ?? [], (head) => head.textContent.trim());
        for (const body of table.tBodies)
            for (const row of body.rows)
                Array.from(row.cells).forEach((cell, place) => {
                    cell.dataset.column = columns[place] ?? "";
                    if (NOTHING.includes(cell.textContent.trim())) cell.dataset.nothing = "";
                });
        // Blocks are not read out as a table unless they are called so.
        for (const part of [table, ...table.querySelectorAll("thead, tbody, tr, th, td")])
            part.setAttribute("role", ROLES[part.tagName]);
    }

    function fit() {
        for (const wrapper of wrappers) wrapper.classList.remove("stacked");
        if (!narrow.matches) return;
        const wide = wrappers.filter((wrapper) => wrapper.scrollWidth > wrapper.clientWidth);
        for (const wrapper of wide) wrapper.classList.add("stacked");
    }

    for (const wrapper of wrappers) wrapper.querySelectorAll("table").forEach(prepare);
    fit();
    // Once more with the fonts and pictures that change widths.
    addEventListener("load", fit);
    addEventListener("resize", fit);
})();
